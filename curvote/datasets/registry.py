"""Names of the data sets; adding one is one file and one line here."""

DATASETS = {
    "simulated": "curvote.datasets.simulated",
    "uniform": "curvote.datasets.uniform",
    "simulated_servers": "curvote.datasets.simulated_servers",
    "drifting": "curvote.datasets.drifting",
    "posterior_drift": "curvote.datasets.posterior_drift",
    "circle": "curvote.datasets.circle",
    "phonemes": "curvote.datasets.phonemes",
    "heart": "curvote.datasets.heart",
    "stroke": "curvote.datasets.stroke",
    "churn": "curvote.datasets.churn",
    "diabetes": "curvote.datasets.diabetes",
    "employee": "curvote.datasets.employee",
    "nhanes": "curvote.datasets.nhanes",
    "nhanes-2003": "curvote.datasets.nhanes_2003",
    "mnist": "curvote.datasets.mnist",
    "zip": "curvote.datasets.zipcode",
    "table": "curvote.datasets.table",
    "curves": "curvote.datasets.curves",
    "remote": "curvote.datasets.remote",
    "remote_table": "curvote.datasets.remote_table",
}

"""Registry of data sets: the module of each name, or the value in a shared one."""

from curvote.base.registry import Registry

_PLACES = {
    "simulated": "curvote.data.simulation.simulated:CURVES",
    "uniform": "curvote.data.simulation.records:UNIFORM",
    "simulated_servers": "curvote.data.simulation.simulated:SERVER_CURVES",
    "drifting": "curvote.data.simulation.simulated:DRIFTING_CURVES",
    "posterior_drift": "curvote.data.simulation.records:POSTERIOR_DRIFT",
    "circle": "curvote.data.simulation.records:CIRCLE",
    "simulated-classes": "curvote.data.simulation.records:CLASSES",
    "phonemes": "curvote.data.public.phonemes",
    "heart": "curvote.data.public.heart",
    "stroke": "curvote.data.public.published_tables:STROKE",
    "churn": "curvote.data.public.published_tables:CHURN",
    "diabetes": "curvote.data.public.published_tables:DIABETES",
    "employee": "curvote.data.public.published_tables:EMPLOYEE",
    "nhanes": "curvote.data.public.nhanes",
    "nhanes-2003": "curvote.data.public.nhanes_2003",
    "mnist": "curvote.data.public.images:MNIST",
    "fashion-mnist": "curvote.data.public.images:FASHION_MNIST",
    "zip": "curvote.data.public.images:ZIP",
    "cifar-10": "curvote.data.public.cifar:CIFAR_10",
    "cifar-100": "curvote.data.public.cifar:CIFAR_100",
    "table": "curvote.data.tables.table",
    "curves": "curvote.data.tables.curves",
    "remote": "curvote.data.tables.remote:CURVES",
    "remote_table": "curvote.data.tables.remote:TABLE",
    "remote_labels": "curvote.data.tables.remote:LABELS",
}
DATASETS = Registry("source", _PLACES, "curvote.datasets")

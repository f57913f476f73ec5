"""Registry of mechanisms: classes by name, and instances from name and budget."""

MECHANISMS = {
    "laplace": "curvote.mechanisms.laplace:Laplace",
    "duchi": "curvote.mechanisms.duchi:Duchi",
    "duchi_vector": "curvote.mechanisms.duchi_vector:DuchiVector",
    "piecewise": "curvote.mechanisms.piecewise:Piecewise",
    "hybrid": "curvote.mechanisms.hybrid:Hybrid",
    "pm_01": "curvote.mechanisms.piecewise:UnitPiecewise",
    "sw_01": "curvote.mechanisms.square_wave:UnitSquareWave",
    "square_wave": "curvote.mechanisms.square_wave:SquareWave",
    "exponential": "curvote.mechanisms.exponential:Exponential",
    "binary_rr": "curvote.mechanisms.binary_rr:BinaryRR",
    "k_rr": "curvote.mechanisms.k_rr:KRR",
    "unary_symmetric": "curvote.mechanisms.unary:UnarySymmetric",
    "unary_optimised": "curvote.mechanisms.unary:UnaryOptimised",
    "unary": "curvote.mechanisms.unary:Unary",
    "subset_selection": "curvote.mechanisms.subset_selection:SubsetSelection",
    "hadamard": "curvote.mechanisms.hadamard:Hadamard",
    "rr_with_prior": "curvote.mechanisms.rr_with_prior:RRWithPrior",
    "alibi": "curvote.mechanisms.alibi:Alibi",
    "rr_on_bins": "curvote.mechanisms.rr_on_bins:RROnBins",
    "sampled": "curvote.mechanisms.sampled:Sampled",
    "privunit": "curvote.mechanisms.privunit:PrivUnit",
    "one_of": "curvote.mechanisms.one_of:OneOf",
    "joint_box": "curvote.mechanisms.joint_box:JointBox",
    "gaussian": "curvote.mechanisms.gaussian:Gaussian",
}

# What a mechanism may call by name: a key cannot see it in the code.
MAY_CALL = {
    "sampled": [
        "laplace",
        "duchi",
        "piecewise",
        "hybrid",
        "square_wave",
        "exponential",
        "binary_rr",
        "rr_on_bins",
    ]
}

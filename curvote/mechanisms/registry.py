"""Registry of mechanisms: the class of each name, and what combinators may call."""

from curvote.base.registry import Registry

_PLACES = {
    "laplace": "curvote.mechanisms.laplace:Laplace",
    "duchi": "curvote.mechanisms.duchi:Duchi",
    "duchi_vector": "curvote.mechanisms.duchi:DuchiVector",
    "piecewise": "curvote.mechanisms.piecewise:Piecewise",
    "hybrid": "curvote.mechanisms.piecewise:Hybrid",
    "pm_01": "curvote.mechanisms.piecewise:UnitPiecewise",
    "sw_01": "curvote.mechanisms.piecewise:UnitSquareWave",
    "square_wave": "curvote.mechanisms.piecewise:SquareWave",
    "exponential": "curvote.mechanisms.laplace:Exponential",
    "binary_rr": "curvote.mechanisms.randomized_response:BinaryRR",
    "k_rr": "curvote.mechanisms.randomized_response:KRR",
    "unary_symmetric": "curvote.mechanisms.frequency_oracles:UnarySymmetric",
    "unary_optimised": "curvote.mechanisms.frequency_oracles:UnaryOptimised",
    "unary": "curvote.mechanisms.frequency_oracles:Unary",
    "subset_selection": "curvote.mechanisms.frequency_oracles:SubsetSelection",
    "hadamard": "curvote.mechanisms.frequency_oracles:Hadamard",
    "rr_with_prior": "curvote.mechanisms.randomized_response:RRWithPrior",
    "alibi": "curvote.mechanisms.alibi:Alibi",
    "rr_on_bins": "curvote.mechanisms.randomized_response:RROnBins",
    "sampled": "curvote.mechanisms.coordinates:Sampled",
    "privunit": "curvote.mechanisms.privunit:PrivUnit",
    "one_of": "curvote.mechanisms.privunit:OneOf",
    "joint_box": "curvote.mechanisms.joint_box:JointBox",
    "gaussian": "curvote.mechanisms.gaussian:Gaussian",
}

# What a mechanism may call by name: a key cannot see it in the code.
_CALLS = {
    "sampled": (
        *("laplace", "duchi", "piecewise", "hybrid"),
        *("square_wave", "exponential", "binary_rr", "rr_on_bins"),
    )
}
MECHANISMS = Registry("mechanism", _PLACES, "curvote.mechanisms", _CALLS)

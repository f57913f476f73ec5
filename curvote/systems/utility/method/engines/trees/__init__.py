"""Engine of trees and their ensembles: exact, cell by cell of their thresholds."""

"""The forms of a release by name: a form's own code counts where it is used."""

FORMS = {
    "cells": "curvote.transfer.forms.cells:Cells",
    "moments": "curvote.transfer.forms.moments:Moments",
    "kernel": "curvote.transfer.forms.kernel:Kernel",
    "printed": "curvote.transfer.forms.printed:Printed",
    "counts": "curvote.transfer.forms.counts:Counts",
}

"""The lab: experiments that check a paper's claim or a limit of ours, repeatable from one seed.

What an experiment's author needs is here; the command line uses the modules beside it. The way of a run:
`registry` finds the experiment → `result.perform` runs it → `draw` and `report` write what it found.
An experiment computes and reports; it never draws, writes files, or takes randomness from anything but its seed.
"""

from proof.charts import Axis, Column, Columns, Distribution, Line, Lines, Mark, Sample
from proof.experiment import Bar, Experiment, Run

__all__ = [
    "Axis",
    "Bar",
    "Column",
    "Columns",
    "Distribution",
    "Experiment",
    "Line",
    "Lines",
    "Mark",
    "Run",
    "Sample",
]

"""What shows that Lycosa does what it says: the experiments of the papers (`lab`) and benchmarks (`bench`), one frame.

What an author of either needs is here; they stand on the modules of `ground`. The way of a run: `registry` finds the
experiment → `experiment.perform` runs it and judges its bars → `report` shows it and writes its files.
An experiment computes and reports; it never draws, writes files, or takes randomness from anything but its seed.
"""

from proof.charts import Axis, Column, ColumnChart, Distribution, Line, LineChart, Mark, Sample
from proof.experiment import Bar, Experiment, PaperFigure, Run

__all__ = [
    "Axis",
    "Bar",
    "Column",
    "ColumnChart",
    "Distribution",
    "Experiment",
    "Line",
    "LineChart",
    "Mark",
    "PaperFigure",
    "Run",
    "Sample",
]

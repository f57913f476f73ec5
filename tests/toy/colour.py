"""The command `curvote colour`: what the model of a pipeline says of a place."""

from __future__ import annotations

import typer


def colour(pipeline: str, east: float, north: float) -> None:
    """Print the colour that the first cell's model gives a place."""
    import pandas as pd

    from curvote.run import history
    from curvote.run.project import find_project
    from curvote.run.results import final_model, first_view

    project = find_project()
    record = history.completed(project, pipeline)
    model = final_model(project, record, first_view(project, record).cell)
    place = pd.DataFrame({"east": [east], "north": [north]})
    typer.echo(str(model.predict(place)[0]))

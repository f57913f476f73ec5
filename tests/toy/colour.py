"""The command `curvote colour`: what the model of a pipeline says of a place."""

import typer


def colour(pipeline: str, east: float, north: float) -> None:
    """Print the colour that the first cell's model gives a place."""
    import pandas as pd

    from curvote.pipeline.config.project import find_project
    from curvote.pipeline.run.results import final_model, final_views
    from curvote.pipeline.store import records

    project = find_project()
    record = records.completed_run(project, pipeline)
    model = final_model(project, record, final_views(project, record)[0].cell)
    place = pd.DataFrame({"east": [east], "north": [north]})
    typer.echo(str(model.predict(place)[0]))

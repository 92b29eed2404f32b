"""HiGHS in a process of its own: a program on standard input, what came of it on the last line of standard output.

Its own process, since OR-Tools brings another HiGHS of the same library name, whose symbols clash with highspy's in one
process, and since some versions of HiGHS print where data should be. This file is run by its path and imports nothing of
placewright.
Modify this file together with ``mip.py``, which starts it.
"""

import contextlib
import ctypes
import json
import signal
import sys


def end_with_the_parent() -> None:
    """Ask Linux to end this process when the one that started it ends; elsewhere the time limit does."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG in <linux/prctl.h>


def main() -> None:
    """Read a JSON object of arrays (see ``mip.Linear``), write one of status, bound and values."""
    end_with_the_parent()
    import highspy
    import numpy as np

    asked = json.load(sys.stdin)
    program = highspy.HighsLp()
    program.num_col_ = len(asked["lower"])
    program.num_row_ = len(asked["starts"])
    program.offset_ = asked["offset"]
    program.col_cost_ = np.array(asked["cost"], dtype=float)
    program.col_lower_ = np.array(asked["lower"], dtype=float)
    program.col_upper_ = np.array(asked["upper"], dtype=float)
    infinite = 2**60
    program.row_lower_ = np.array([-highspy.kHighsInf if x < -infinite else x for x in asked["row_lower"]], dtype=float)
    program.row_upper_ = np.array([highspy.kHighsInf if x > infinite else x for x in asked["row_upper"]], dtype=float)
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = np.array([*asked["starts"], len(asked["columns"])], dtype=np.int32)
    program.a_matrix_.index_ = np.array(asked["columns"], dtype=np.int32)
    program.a_matrix_.value_ = np.array(asked["coefficients"], dtype=float)
    program.integrality_ = [highspy.HighsVarType.kInteger] * len(asked["lower"])

    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in (
        ("output_flag", False),
        ("time_limit", asked["seconds"]),
        ("random_seed", asked["seed"]),
        ("threads", 1),
        ("mip_rel_gap", 0.0),
    ):
        solver.setOptionValue(name, value)
    solver.passModel(program)
    if asked["hint"] is not None:
        start = highspy.HighsSolution()
        start.col_value = [float(value) for value in asked["hint"]]
        solver.setSolution(start)
    solver.run()
    info = solver.getInfo()
    feasible = int(info.primal_solution_status) == 2  # kSolutionStatusFeasible
    answer = {
        "optimal": solver.getModelStatus() == highspy.HighsModelStatus.kOptimal,
        "bound": info.mip_dual_bound,
        "values": [round(value) for value in solver.getSolution().col_value] if feasible else None,
    }
    print("\n" + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

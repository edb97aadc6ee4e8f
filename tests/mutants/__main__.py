"""``python -m tests.mutants [NAME …]``: break each promise on purpose, and see that its tests notice.

First the named tests run on the sources as they are, where all must pass. Ends with 1 if a mutant survives.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

from tests.mutants.mutant import Mutant, mutants
from tests.mutants.trial import Finding, NoTrial, Share, shares, trial, unpatched

__all__ = ()

_AT_ONCE = 2
_WIDTH = 38


def main(names: Sequence[str]) -> int:
    """Run the trials, print a line per test, and return the exit status."""
    try:
        chosen = mutants(tuple(names))
    except ValueError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    began = perf_counter()
    with ThreadPoolExecutor(_AT_ONCE) as lanes:
        if not all([*lanes.map(_is_green, shares(chosen))]):
            return 1
        print(f"\n{'mutant':<{_WIDTH}} invariant colour  seconds test")
        noticed = [*lanes.map(_is_noticed, chosen)]
    survivors = [mutant.name for mutant, lost in zip(chosen, noticed, strict=True) if not lost]
    print(f"\n{len(chosen)} mutants in {perf_counter() - began:.0f} s, ", end="")
    print(f"survivors: {', '.join(survivors)}" if survivors else "all of them noticed")
    return 1 if survivors else 0


def _is_green(share: Share) -> bool:
    began = perf_counter()
    try:
        reports = unpatched(share)
    except NoTrial as error:
        print(f"unpatched: {error}", file=sys.stderr)
        return False
    failures = [report for report in reports if report.fate != "passed"]
    for report in failures:
        print(f"unpatched, and yet {report.fate}: {report.node}: {report.why}", file=sys.stderr)
    variants = f"{len(reports) - len(failures)} of {len(reports)} variants"
    print(f"unpatched, {len(share.tests)} tests: {variants} passed in {perf_counter() - began:.0f} s", flush=True)
    return not failures


def _is_noticed(mutant: Mutant) -> bool:
    try:
        findings = trial(mutant)
    except NoTrial as error:
        findings = [Finding("-", "broken", str(error), 0.0)]
    lines = []
    for finding in findings:
        test = finding.test.rpartition("::")[2]
        lines.append(f"{mutant.name:<{_WIDTH}} {mutant.invariant:>9} {finding.colour:<6} {finding.seconds:8.1f} {test}")
        if finding.colour != "red":
            lines.append(f"    {mutant.broken}")
            lines.append(f"    {finding.why}")
    print("\n".join(lines), flush=True)
    return all(finding.colour == "red" for finding in findings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

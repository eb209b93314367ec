"""The short form: two minutes of faults. The checks on every change run it by `python3 run.py chaos`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos import report
from tests.chaos.trial import Trial


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_two_minutes_of_faults_lose_no_job_and_double_none_without_a_reason(tmp_path: Path):
    result = Trial(1, 120, tmp_path).run()
    print(report.text(result))
    assert result.good

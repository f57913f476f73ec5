"""What keeps schedules alive, with children that a test ends as it likes."""

import errno

import pytest

from curvote.base.durable import private_folder
from curvote.flows import lines
from curvote.flows.server.launch import DATABASE_DOWN, READY
from curvote.flows.serving import health
from curvote.flows.serving import service as supervisor
from curvote.flows.serving.health import Heartbeat, check_health
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml, parse_value
from tests import plain
from tests.supervised import HOURLY, Watched, end, renewed, watched

__all__ = ["watched"]


def test_a_dead_server_is_started_again_and_the_runner_renewed(
    watched: Watched,
) -> None:
    """One line when it falls, one when it is back; nothing fires meanwhile."""
    watched.up()
    assert watched.it.trouble == ""
    end(watched.it.server)
    watched.state = None
    watched.tick()
    assert watched.it.trouble == "Prefect's server does not answer"
    assert watched.said == [
        "Prefect's server was ended by SIGKILL; it is started again in 1 s"
    ]
    watched.tick()
    watched.state = READY
    watched.tick()
    assert watched.said[1:] == ["Prefect's server answers again; schedules go on"]
    assert watched.orders[-1] == {"renew": True}
    renewed(watched.it.runner)
    watched.tick()
    watched.tick()
    assert watched.it.runner.starts == 2
    order = watched.orders[-1]
    assert order["schedules"] == {"tiny": HOURLY}
    assert order["since"].keys() == {"tiny"}
    assert not order["forgiven"]
    watched.up()
    assert watched.it.trouble == ""
    assert len(watched.said) == 2


def test_a_dead_runner_is_started_again(watched: Watched) -> None:
    """The line names its log."""
    watched.up()
    end(watched.it.runner)
    watched.tick()
    (line,) = watched.said
    assert line.startswith("the runner of schedules was ended by SIGKILL")
    assert "runner.log" in line
    watched.tick()
    assert watched.it.runner.starts == 2
    assert watched.it.trouble == "the process that starts scheduled runs is not up"


@pytest.mark.parametrize("who", ["server", "runner"])
def test_a_child_that_hangs_is_ended(watched: Watched, who: str) -> None:
    """It lives and says nothing: after a minute and a half it is started again."""
    watched.up()
    child = getattr(watched.it, who)
    if who == "server":
        watched.state = None
        watched.tick()
        assert watched.said == []  # it may just be busy
        watched.it._answered -= supervisor.MAX_SILENCE + 1
    else:
        watched.it._reported -= supervisor.MAX_SILENCE + 1
    watched.tick()
    assert child.process is None
    assert "for 90 s; it is started again in 1 s" in watched.said[-1]


def test_systemd_hears_of_schedules_once(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """READY when they are all registered, the watchdog all the time."""
    said: list[str] = []
    monkeypatch.setattr(supervisor.systemd, "notify_systemd", said.append)
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")
    watched.tick()
    assert said.count("READY=1") == 0
    assert said.count("WATCHDOG=1") == 1
    watched.up()
    watched.up()
    assert said.count("READY=1") == 1


def test_a_database_that_is_away_is_waited_for(watched: Watched) -> None:
    """No restart helps; when it is back, what was missed since is looked for."""
    watched.up()
    good = watched.it._last_good
    watched.state = DATABASE_DOWN
    for _ in range(3):
        watched.tick()
    assert watched.said == [
        "Prefect's database does not answer; schedules wait until it does"
    ]
    assert watched.it.server is not None
    assert watched.it.server.starts == 1
    watched.state = READY
    watched.tick()
    assert watched.said[-1] == "Prefect's server answers again; schedules go on"
    renewed(watched.it.runner)
    watched.tick()
    watched.tick()
    assert good is not None
    assert watched.orders[-1]["since"] == {"tiny": good.isoformat()}


@pytest.mark.parametrize("jump", [-3 * 3600.0, 365 * 86_400.0])
def test_a_clock_that_is_set_renews_the_runner(watched: Watched, jump: float) -> None:
    """Back, nothing would fire for hours; forth, a year's firings all at once."""
    watched.up()
    watched.tick(jump)
    assert watched.orders[-1] == {"renew": True}
    assert watched.said == [
        f"the clock has moved by {jump:+.0f} s; schedules go on by the new time"
    ]
    watched.tick()
    assert len(watched.said) == 1


def test_an_edit_is_read_and_a_faulty_one_is_said(watched: Watched) -> None:
    """The old schedules stay until the file is sound again."""
    project = watched.it.project
    sound = project.pipelines_file.read_text()
    for bad in ("pipelines: [", sound.replace("3600", "-1"), sound + "odd: 1\n"):
        project.pipelines_file.write_text(bad)
        watched.tick()
        watched.tick()
        assert "as it was" in watched.said[-1] or "as they were" in watched.said[-1]
        assert watched.said[-1].startswith("pipelines.yaml")
        assert watched.it.schedules == {"tiny": HOURLY}
    values = parse_value(sound)
    values["pipelines"]["other"] = plain.TINY | {"schedule": {"cron": "0 6 * * *"}}
    project.pipelines_file.write_text(as_yaml(values))
    watched.tick()
    watched.tick()
    assert watched.said[-1].endswith("scheduled now: tiny, other")
    assert watched.orders[-1] == {"renew": True}
    assert len(watched.said) == 4
    renewed(watched.it.runner)
    watched.tick()
    watched.tick()
    assert watched.orders[-1]["forgiven"]
    assert watched.orders[-1]["schedules"].keys() == {"tiny", "other"}


def test_a_faulty_pipeline_keeps_no_other_from_its_schedule(watched: Watched) -> None:
    """It is said once, and by health until it is mended; the others are taken up."""
    project = watched.it.project
    values = parse_value(project.pipelines_file.read_text())
    values["pipelines"]["bad"] = plain.TINY | {"schedule": {"cron": "61 6 * * *"}}
    values["pipelines"]["worse"] = {"source": {"name": "nothing"}}
    values["pipelines"]["other"] = plain.TINY | {"schedule": {"cron": "0 6 * * *"}}
    project.pipelines_file.write_text(as_yaml(values))
    for _ in range(4):
        watched.tick()
    assert watched.it.schedules.keys() == {"tiny", "other"}
    assert len([line for line in watched.said if "nothing runs it" in line]) == 2
    private_folder(project.state)
    watched.it.heartbeat().write(project)
    beat = health.last_heartbeat(project)
    assert beat is not None
    assert beat.faulty.keys() == {"bad", "worse"}
    told = {row["check"]: row["status"] for row in check_health(project)}
    assert [told["bad"], told["worse"]] == ["failed", "failed"]


def test_what_another_serve_left_says_since_when(watched: Watched) -> None:
    """The next start looks for what was missed, of schedules that stayed the same."""
    watched.up()
    watched.it._last_beat = 0.0
    watched.tick()
    left = health.last_heartbeat(watched.it.project)
    assert left is not None
    assert left.schedules == {"tiny": HOURLY}
    assert left.next["tiny"]
    watched.it._last_good = None
    watched.it._good_schedules = {}
    watched.it._resume()
    assert watched.it._last_good is not None
    assert watched.it._last_good.isoformat() == left.good
    assert watched.it._good_schedules == left.schedules


def test_a_missed_firing_is_told_with_its_pipeline(watched: Watched) -> None:
    """By the runner, which knows what ran."""
    missed = {"pipeline": "tiny", "count": 2, "made_up": True}
    lines.send_message(watched.it.pipe.path, {"missed": missed})
    lines.send_message(
        watched.it.pipe.path, {"passed": {"pipeline": "tiny", "count": 1}}
    )
    watched.tick()
    assert watched.missed == [
        ("tiny", {"count": 2, "made_up": True}),
        ("tiny", {"count": 1}),
    ]


def test_a_project_without_schedules_left_waits(
    watched: Watched, project: Project
) -> None:
    """Serve goes on, in case one comes back."""
    assert project.root.exists()
    watched.it.schedules = {}
    end(watched.it.runner)
    watched.tick()
    watched.tick()
    assert watched.it.runner.process is None
    assert watched.it.trouble == "no pipeline has a schedule"


def full(*_: object) -> None:
    """Do as a disk without space does."""
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_ends_no_schedule(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its own file nor a child that cannot be started: said once each time."""
    watched.up()
    said = "No space left on device; it is tried again (see `curvote doctor`)"
    with monkeypatch.context() as patch:
        patch.setattr(Heartbeat, "write", full)
        patch.setattr(watched.it.runner, "spawn", full)
        watched.it._last_beat = 0.0
        end(watched.it.runner)
        for _ in range(4):
            watched.tick()
        assert watched.said.count(said) == 1
        assert watched.it.runner.process is None
    watched.tick()
    assert watched.it.runner.starts == 2
    left = health.last_heartbeat(watched.it.project)
    assert left is not None
    assert left.is_alive
    monkeypatch.setattr(Heartbeat, "write", full)
    watched.it._last_beat = 0.0
    watched.tick()
    assert watched.said.count(said) == 2


def test_an_edit_while_the_server_started_is_taken_up(watched: Watched) -> None:
    """It came after the file was read, and before anybody watched it."""
    project = watched.it.project
    text = project.pipelines_file.read_text()
    project.pipelines_file.write_text(text.replace("3600", "7200"))
    watched.it._resume()
    watched.tick()
    watched.tick()
    assert watched.said == ["pipelines.yaml has changed; scheduled now: tiny"]
    assert watched.it.schedules["tiny"]["interval"] == 7200

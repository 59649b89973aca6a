"""Sets: nothing public gives the twin, and a failure is a bad end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from dig.faults.inject.fault import Fault
from dig.faults.inject.fault_catalogue import KINDS
from dig.graph.records import Emit, FindingRow, Run
from dig.lab import run_pair
from dig.lab.benchmark.attributing import FLOORS, attribute_all
from dig.lab.benchmark.candidates import Configuration, InstanceDraft, Recipe, Stratum
from dig.lab.benchmark.hidden import Made, attempt
from dig.lab.benchmark.instances import LABELS, FaultSet, Index, Instance, Label
from dig.lab.benchmark.oracle import oracle
from dig.lab.benchmark.scores_answers import NO_HARM, Scores, score
from dig.lab.benchmark.scores_detectors import score_detectors
from dig.lab.benchmark.storing import make_set, write_instance
from dig.lab.run_pair import Played, lines, publish_records
from dig.lab.truth.baseline import Baseline
from dig.lab.truth.verification import GOOD, at_rest, is_all_good, verdicts
from dig.tasks.run.team_run import TeamRun
from dig.traces.journal.reader import TRACE
from dig.traces.run import RecordedRun
from dig.traces.verify import verify
from tests.lab.faults.audit.__main__ import audit
from tests.lab.faults.conftest import files

PLAYED: dict[str, Played] = {}
SECRET = "no-text-of-a-trace"
HIDDEN = Recipe(
    seed=77,
    count=60,
    configurations=(
        Configuration("newsgroups", 60, 3),
        Configuration("count-frequency", 5000, 6),
        Configuration("newsgroups", 150, 6, problems=2),
        Configuration("count-frequency", 5000, 3, remembers=True),
    ),
    baseline_runs=40,
    salt=SECRET,
    most_of_a_stratum=2,
)

FEW = replace(HIDDEN, count=12, baseline_runs=20)

ELSEWHERE = """
from pathlib import Path
from tests.lab.faults.test_hidden_set import FEW
from dig.lab.benchmark.storing import make_set
make_set(Path({out!r}), FEW, jobs=2)
"""


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> FaultSet:
    """A set of all strata; nobody may change it."""
    path = tmp_path_factory.mktemp("sets") / "hidden"
    make_set(path, HIDDEN)
    return FaultSet.open(path)


def play(run: TeamRun, faults: Sequence[Fault] = ()) -> Played:
    """A run, played once: several tests look at the same runs."""
    key = repr((run, tuple(faults)))
    if key not in PLAYED:
        PLAYED[key] = run_pair.play(run, faults)
    return PLAYED[key]


@pytest.fixture(scope="module")
def by_rules(hidden: FaultSet) -> Scores:
    """The scores of the rules about the set."""
    return score(attribute_all("rules", hidden), hidden)


def baseline_of(known: FaultSet, one: Instance) -> Baseline:
    path = known.path / "baseline" / f"{one.entry.configuration}.json"
    return Baseline.read(json.loads(path.read_text()))


@pytest.mark.nightly
def test_seed_and_salt_make_the_same_bytes(tmp_path: Path) -> None:
    """In two processes instead of one, and with another hash seed."""
    make_set(tmp_path / "once", FEW)
    out = tmp_path / "again"
    environment = {**os.environ, "PYTHONHASHSEED": "5"}
    script = ELSEWHERE.format(out=str(out))
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, timeout=200)
    assert files(out) == files(tmp_path / "once")


def test_nothing_outside_the_labels_tells_a_secret(hidden: FaultSet, tmp_path: Path) -> None:
    """No seed, salt, run name, kind or twin of a held-out run stands in any other file."""
    copy = tmp_path / "copy"
    shutil.copytree(hidden.path, copy)
    shutil.rmtree(copy / LABELS)
    text = b"\n".join(path.read_bytes() for path in sorted(copy.rglob("*")) if path.is_file())
    labels = [one.label() for one in hidden.instances("held-out")]
    assert len(labels) > 20
    for label in labels:
        run = label.run
        for secret in (run["salt"], run["run"]):
            assert secret.encode() not in text
    assert SECRET.encode() not in text
    for one in hidden.instances("held-out"):
        public = (one.folder / TRACE).read_text()
        header = json.loads(public.splitlines()[0])
        assert header["run"] == one.entry.id and header.get("seed") is None
        assert f"s{one.label().run['seed']}" not in public
        assert not [kind for kind in KINDS if len(kind) > 8 and f'"{kind}"' in public]
    assert not [path for path in (copy / "held-out").rglob("*.*") if path.name != TRACE]
    assert json.loads((copy / "set.json").read_text()).keys() == {"format", "version", "instances"}


def test_a_twin_cannot_be_played_from_what_a_trace_says(hidden: FaultSet) -> None:
    """All settings of the run but its salt do not give the twin, nor do public salts."""
    public = [one.label().run["salt"] for one in hidden.instances("public")]
    for one in [*hidden.instances("held-out")][:6]:
        run, twin = one.label().team_run, one.twin()
        assert publish_records(play(run).records, one.entry.id) == twin or one.label().innocent
        for salt in ("", *public[:3]):
            tried = play(replace(run, salt=salt))
            assert publish_records(tried.records, one.entry.id) != twin


def test_each_message_of_an_agent_bears_the_same_mark(hidden: FaultSet) -> None:
    """So that a disturbed delivery cannot be told by it."""
    for one in hidden.instances():
        rows = [json.loads(line) for line in (one.folder / TRACE).read_text().splitlines()]
        sent = [row for row in rows if row["kind"] == "emit" and row["by"] is not None]
        assert {row.get("policy") for row in sent if not row.get("final")} <= {"fault"}


def test_traces_keep_the_rules(hidden: FaultSet) -> None:
    """The independent checker finds nothing wrong, with contents and without."""
    for path in sorted(hidden.path.rglob("*.dig.jsonl"))[::9]:
        assert not verify(path).problems


def test_a_label_is_enough_to_play_the_run_again(hidden: FaultSet) -> None:
    """Trace and twin come out byte for byte, decoys included."""
    for one in [*hidden.instances()][::5]:
        label, name = one.label(), one.entry.id
        faulted = play(label.team_run, (*label.decoys, *label.read_faults()))
        twin = play(label.team_run, label.decoys)
        assert lines(publish_records(faulted.records, name)) == (one.folder / TRACE).read_bytes()
        assert publish_records(twin.records, name) == one.twin()


def test_harm_is_a_bad_end(hidden: FaultSet) -> None:
    """And its twin has a good one."""
    seen = set()
    for one in hidden.instances():
        label, baseline = one.label(), baseline_of(hidden, one)
        twin = play(label.team_run, label.decoys)
        run = play(label.team_run, (*label.decoys, *label.read_faults()))
        assert is_all_good(verdicts(twin, baseline))
        assert is_all_good(verdicts(run, baseline, twin)) != label.harm
        seen.add(label.harm)
    assert seen == {True, False}


def test_runs_without_harm_are_in_no_headline(hidden: FaultSet) -> None:
    """They have a row of their own."""
    strata = dict(score(attribute_all("random", hidden), hidden, with_floors=False).strata())
    harmless = {one.entry.id for one in hidden.instances() if not one.label().harm}
    assert harmless
    assert {run.entry.id for run in strata.pop(NO_HARM)} == harmless
    assert not harmless & {run.entry.id for some in strata.values() for run in some}


def ended(
    label: Label, faults: Sequence[Fault], baseline: Baseline, twin: Played
) -> tuple[str, ...]:
    played = play(label.team_run, (*label.decoys, *faults))
    return verdicts(played, baseline, twin)


def test_leaving_a_cause_out_changes_the_end_and_a_bystander_does_not(hidden: FaultSet) -> None:
    """Each fault of a failure is one of the two."""
    checked = 0
    for one in hidden.instances():
        label, baseline = one.label(), baseline_of(hidden, one)
        if not label.harm:
            continue
        faults, twin = label.read_faults(), play(label.team_run, label.decoys)
        assert {c.number for c in (*label.causes, *label.bystanders)} == set(range(len(faults)))

        came_to = ended(label, faults, baseline, twin)
        for cause in (*label.causes, *label.bystanders):
            others = list(faults)
            others[cause.number] = at_rest(others[cause.number])
            assert (ended(label, others, baseline, twin) != came_to) == (cause in label.causes)
            checked += cause in label.bystanders
    assert checked


def test_decoys_are_in_the_twin_and_do_no_harm(hidden: FaultSet) -> None:
    """The twin with them is good; the failure is there without them."""
    decoyed = [one for one in hidden.instances() if one.label().stratum == "decoys"]
    assert len(decoyed) > 5
    for one in decoyed:
        label, baseline = one.label(), baseline_of(hidden, one)
        quiet = play(label.team_run)
        twin = play(label.team_run, label.decoys)
        assert twin.records != quiet.records
        assert {act.fault for act in twin.injections} == set(range(len(label.decoys)))
        assert not {f.target for f in label.decoys} & {f.target for f in label.read_faults()}
        if label.harm:
            alone = play(label.team_run, (*map(at_rest, label.decoys), *label.read_faults()))
            assert not is_all_good(verdicts(alone, baseline, twin))


def test_problems_at_once_have_roots_answers_and_ends_of_their_own(hidden: FaultSet) -> None:
    """One may come to a good end and another to a bad one; the twin answers all."""
    ends = set()
    sessions = [one for one in hidden.instances() if one.label().stratum == "concurrent"]
    assert len(sessions) > 10
    for one in sessions:
        label, baseline = one.label(), baseline_of(hidden, one)
        run, twin = RecordedRun(one.records()), RecordedRun(one.twin())
        posed = [event for event in run.events.values() if event.by is None]
        assert run.graph.run.session and len(posed) == label.problems == 2
        assert len({event.to for event in posed}) == 2
        answers = [event for event in twin.events.values() if event.accepted_t is not None]
        assert len({json.dumps(event.payload["whole"]) for event in answers}) == 2
        sources = [twin.graph.source_ids(twin.graph.event(event.id).sources) for event in answers]
        assert all(len(source) == 1 for source in sources) and len({*map(str, sources)}) == 2
        played = play(label.team_run, label.read_faults()), play(label.team_run)
        came_to = verdicts(played[0], baseline, played[1])
        for said, it in zip(label.faulted.problems, played[0].problems, strict=True):
            assert (said.outcome, said.rmse) == (it.result.outcome, it.rmse)
        ends.add(tuple(sorted(one == GOOD for one in came_to)))
    assert {(False, True), (False, False)} <= ends


def test_the_oracle_tells_two_faults_apart(hidden: FaultSet) -> None:
    """Of failures with two faults it names a cause more often than the first difference does."""
    both = [one for one in hidden.instances() if len(one.label().faults) == 2 and one.label().harm]
    named = first = 0
    for one in both:
        answer, causes = oracle(one), {cause.component for cause in one.label().causes}
        names = [cause.component for cause in answer.root_causes]
        assert len(names) <= 2 and len({*names}) == len(names)
        first += names[0] in causes
        named += not causes.isdisjoint(names)
    assert len(both) > 3 and named > first


def test_silent_contents_are_silent(hidden: FaultSet) -> None:
    """No message says what it covers, sums are as they were, and each has the right shape."""
    silent = [one for one in hidden.instances() if one.label().stratum == "silent contents"]
    alone = 0
    for one in silent:
        label, records = one.label(), one.records()
        assert b"covers" not in lines(records) and '"answers"' in lines(records).decode()
        assert isinstance(records[0], Run) and records[0].memory
        if len(label.read_faults()) > 1:
            continue  # other records may differ before
        alone += 1
        ours, theirs = (run[label.injections[0]["t"]] for run in (records, one.twin()))
        assert isinstance(ours, Emit) and isinstance(theirs, Emit)
        assert ours.payload["counts"] != theirs.payload["counts"]
        assert ours.payload["counts"].keys() == theirs.payload["counts"].keys()
        assert sum(ours.payload["counts"].values()) == sum(theirs.payload["counts"].values())
    assert len(silent) > alone > 0


def test_several_problems_can_be_mixed_up(tmp_path: Path) -> None:
    """An agent that puts solutions of both together does harm, and CLA says so; no twin has it."""
    place = HIDDEN.configurations[2]
    runs = [play(run) for run in HIDDEN.baseline(place)]
    assert not any("CLA" in run.raised for run in runs)
    stratum = Stratum(place, ("merge_across_lineages",), "concurrent")
    drafts = (InstanceDraft(stratum, number, HIDDEN.key) for number in range(8))
    tried = [attempt((draft, Baseline.from_runs(runs))) for draft in drafts]
    harmful = [one.label for one in tried if isinstance(one, Made) and one.label.harm]
    assert len(harmful) > 1
    assert all("CLA" in label.faulted.raised for label in harmful)
    made = [one for one in tried if isinstance(one, Made)]
    entries = [write_instance(tmp_path, f"i{n}", "public", one) for n, one in enumerate(made)]
    (scores,) = score_detectors(FaultSet(tmp_path, Index(instances=tuple(entries)))).values()
    assert scores.to_json()["patterns"]["CLA"]["recall"]["mean"] == 1.0


def test_the_onset_of_a_gradual_fault_is_the_first_difference(hidden: FaultSet) -> None:
    """Its first act may be earlier; its strength rises."""
    gradual = [one for one in hidden.instances() if one.label().stratum == "gradual"]
    assert len(gradual) > 3
    for one in gradual:
        (cause,) = one.label().causes or one.label().bystanders
        pairs = zip(one.records(), one.twin(), strict=False)
        first = next(t for t, (ours, theirs) in enumerate(pairs) if ours != theirs)
        assert cause.first_act <= cause.first_effect == first
        assert all(fault.parameters["rise_s"] > 0 for fault in one.label().read_faults())


def test_traces_without_contents_have_none_and_the_same_findings(hidden: FaultSet) -> None:
    """A token stands for each payload; no error has a text."""
    found = 0
    for one in hidden.instances("held-out"):
        bare, full = one.structure_only(), one.records()
        assert [(row.kind, row.t, row.us) for row in bare] == [
            (row.kind, row.t, row.us) for row in full
        ]
        findings = [row for row in bare if isinstance(row, FindingRow)]
        assert findings == [row for row in full if isinstance(row, FindingRow)]
        found += len(findings)
        rows = [json.loads(line) for line in lines(bare).splitlines()]
        payloads = [row["payload"] for row in rows if row["kind"] == "emit"]
        assert all(str(payload).startswith("payload-") for payload in payloads)
        assert {row.get("error") for row in rows} <= {None, "an error"}
        assert isinstance(bare[0], Run) and bare[0].task is None
    assert found


def test_the_structure_only_track_is_answered_and_scored(hidden: FaultSet) -> None:
    """About held-out runs alone."""
    answers = attribute_all("rules", hidden, structure_only=True)
    held_out = {one.entry.id for one in hidden.instances("held-out")}
    assert answers.answers.keys() == held_out
    scored = score(answers, hidden, structure_only=True)
    assert not scored.missing
    assert {run.entry.id for run in scored.scored} == held_out
    assert scored.to_json()["floors"]["rules"] == scored.to_json()["strata"]["all"]


@pytest.mark.nightly
def test_floors_computed_twice_are_equal(hidden: FaultSet, by_rules: Scores) -> None:
    """They stand beside every score, the same whoever answers, and in its JSON too."""
    once = score(attribute_all("earliest_deviation", hidden), hidden).to_json()
    again = by_rules.to_json()
    assert once["floors"] == again["floors"]
    assert [*once["floors"]] == [*FLOORS]
    assert once["floors"]["earliest_deviation"]["agent"] == once["strata"]["all"]["agent"]
    assert once["oracle"]["any_agent"]["mean"] > once["floors"]["random"]["any_agent"]["mean"]


def test_rules_and_oracle_find_steps(by_rules: Scores) -> None:
    """The oracle, which sees the twin, finds more than half of them."""
    rules, oracle = (by_rules.to_json()[key] for key in ("floors", "oracle"))
    assert 0 < rules["rules"]["step"]["mean"] <= 1
    assert oracle["step"]["mean"] > 0.5


def test_a_salt_changes_all_draws_and_nothing_else() -> None:
    """Runs with other salts have the same problem, and other agents' draws."""
    run = TeamRun(agents=3, size=2000, method="mas", seed=3)
    salted = replace(run, salt="x")
    assert salted.key != run.key and replace(salted, salt="").name == run.name
    assert TeamRun.read(salted.about()) == salted
    plain, other = play(run).records, play(salted).records
    assert plain[1] == other[1] and plain != other


def test_the_independent_audit_finds_nothing_wrong(hidden: FaultSet) -> None:
    """Graphs, labels and traces without contents hold when they are measured from the files."""
    instances, steps, wrong = audit(hidden.path)
    assert wrong == []
    assert instances == HIDDEN.count and steps > 3 * instances


def test_the_audit_finds_a_label_that_is_wrong(hidden: FaultSet, tmp_path: Path) -> None:
    """Another step, a harm that is none, and contents that were left in."""
    shutil.copytree(hidden.path, tmp_path / "set")
    harmful = [one for one in hidden.instances("held-out") if one.label().harm]
    name = harmful[0].entry.id
    path = tmp_path / "set" / LABELS / name / "label.json"
    label = json.loads(path.read_text())
    label["causes"][0]["step"] += 3
    label["harm"] = False
    path.write_text(json.dumps(label))
    bare = tmp_path / "set" / "structure-only" / name / TRACE
    shutil.copy(tmp_path / "set" / "held-out" / name / TRACE, bare)
    _, _, wrong = audit(tmp_path / "set")
    assert {what.partition(": ")[0] for what in wrong} == {name}
    told = " ".join(wrong)
    assert "is not in step" in told and "harm is not what" in told and "contents" in told

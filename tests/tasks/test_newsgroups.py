"""Newsgroups: the posts, the problem, the tools, the scorer."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.errors import SettingsError
from dig.tasks.newsgroups import VARIABLE, Newsgroups, data_from_environment
from dig.tasks.newsgroups_posts import (
    GROUPS,
    MOST_CHARACTERS,
    TRAIN,
    our_own,
    real,
    without_headers,
)

REAL = os.environ.get(VARIABLE)
needs_data = pytest.mark.skipif(not REAL, reason=f"{VARIABLE} does not name the newsgroups")


def post(text: str, group: str = "sci.space") -> bytes:
    return f"From: ada\nNewsgroups: {group}\n\n{text}\n".encode("latin-1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The standard layout, with three posts a group."""
    for group in GROUPS:
        (tmp_path / TRAIN / group).mkdir(parents=True)
        for number in range(3):
            text = post(f"Caf\xe9 {number} of {group[:3]}", group)
            (tmp_path / TRAIN / group / f"{number}").write_bytes(text)
    return tmp_path


def everything(task: Newsgroups) -> list[str]:
    parts = task.tools()["split"]([0, task.size], -(-task.size // task.most_per_message))
    return [text for part in parts for text in task.tools()["raw_data"](part)]


# --- the data ---


def test_our_own_posts_are_ten_for_each_topic_and_all_different() -> None:
    posts = our_own()
    assert Counter(post.group for post in posts) == dict.fromkeys(GROUPS, 10)
    assert len({post.text() for post in posts}) == 200


@pytest.mark.parametrize("below", ["", TRAIN])
def test_the_folder_or_the_one_it_is_in_can_be_named(folder: Path, below: str) -> None:
    posts = real(str(folder / below))
    assert Counter(post.group for post in posts) == dict.fromkeys(GROUPS, 3)
    assert posts[0].text() == "Caf\xe9 0 of alt"


def test_posts_are_found_after_the_program_has_changed_its_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path means the folder from which the posts were listed."""
    monkeypatch.chdir(folder.parent)
    posts = real(folder.name)
    monkeypatch.chdir(folder)
    assert posts[0].text().startswith("Café")


def test_the_same_seed_draws_the_same_posts_and_another_one_others(folder: Path) -> None:
    first, again, other = (everything(Newsgroups(20, seed, folder)) for seed in (1, 1, 2))
    assert first == again != other


def test_what_the_data_are_is_said(folder: Path) -> None:
    assert "our own" in Newsgroups(60, 1).data
    assert Newsgroups(60, 1, folder).data == f"real newsgroups from {folder}"


def test_the_environment_says_where_the_data_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "somewhere")
    assert data_from_environment() == "somewhere"
    monkeypatch.setenv(VARIABLE, "")
    assert data_from_environment() is None


def test_no_text_names_the_group_it_was_sent_to(folder: Path) -> None:
    """Headers are taken off, those that are quoted in the text too."""
    text = post("I agree.\n> Newsgroups: rec.autos,sci.space\n>Xref: sci.space:1").decode("latin-1")
    assert without_headers(text) == "I agree."
    assert len(without_headers("a: b\n\n" + "x" * 9999)) == MOST_CHARACTERS


HEADER = re.compile(r"^\W*(newsgroups|xref|followup-to)\s*:", re.I | re.M)
lines = st.sampled_from(["Newsgroups: a.b", "> XREF : c", "| Followup-To: d", "", "a word", ">>"])


@given(st.lists(lines | st.text(max_size=20)).map("\n".join))
def test_whatever_a_post_is_no_header_is_left_of_it(post: str) -> None:
    text = without_headers(post)
    assert not HEADER.search(text) and len(text) <= MOST_CHARACTERS


@needs_data
def test_the_real_posts_are_without_headers() -> None:
    texts = everything(Newsgroups(150, 1, REAL))
    assert len(texts) == 150 and not any(map(HEADER.search, texts))


# --- what is wrong with it ---


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere: No such file"):
        Newsgroups(60, 1, tmp_path / "nowhere")


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"has no newsgroups: it should have folders like"):
        Newsgroups(60, 1, tmp_path)


def test_an_unknown_group_is_named(folder: Path) -> None:
    (folder / TRAIN / "rec.cooking").mkdir()
    with pytest.raises(SettingsError, match=r"unknown group, rec\.cooking"):
        Newsgroups(60, 1, folder / TRAIN)


def test_a_group_that_is_missing_is_named(folder: Path) -> None:
    (folder / TRAIN / "rec.autos").rename(folder / "elsewhere")
    with pytest.raises(SettingsError, match=r"lacks rec\.autos"):
        Newsgroups(60, 1, folder / TRAIN)


def test_an_empty_group_is_named(folder: Path) -> None:
    for file in (folder / TRAIN / "rec.autos").iterdir():
        file.unlink()
    with pytest.raises(SettingsError, match=r"rec\.autos is empty"):
        Newsgroups(60, 1, folder)


def test_a_post_that_cannot_be_read_is_named(folder: Path) -> None:
    gone = folder / TRAIN / "sci.med" / "1"
    gone.unlink()
    gone.symlink_to(folder / "nothing")
    with pytest.raises(SettingsError, match=r"sci\.med/1: No such file"):
        Newsgroups(60, 1, folder)


@pytest.mark.parametrize("size", [0, 1, 201])
def test_more_posts_than_there_are_cannot_be_drawn(size: int) -> None:
    with pytest.raises(SettingsError, match=r"which has 200; try 2 to 200"):
        Newsgroups(size, 1)


# --- problem, tools, scorer ---


@pytest.mark.parametrize("size", [2, 60, 100, 150])
def test_no_single_message_carries_all_posts(size: int) -> None:
    task = Newsgroups(size, 1)
    with pytest.raises(ValueError, match="split it first"):
        task.tools()["raw_data"]([0, size])
    assert len(everything(task)) == size


def test_the_problem_is_a_handle_and_carries_no_post() -> None:
    task = Newsgroups(60, 1)
    problem = task.problem("a1")
    assert problem.payload["part"] == [0, 60] and problem.to == ("a1",)
    assert not any(text in str(problem.payload) for text in everything(task))


def test_the_true_counts_have_no_error_and_none_at_all_have_much() -> None:
    task = Newsgroups(100, 3)
    assert sum(task._truth.values()) == 100
    assert task.score({"counts": dict(task._truth)}).rmse == 0.0
    none = task.score({"counts": {}}).rmse
    assert none is not None and 5 <= none < 7


@pytest.mark.parametrize("counts", [{"sci.cooking": 1}, {"sci.med": -1}, {"sci.med": "3"}])
def test_counts_of_something_else_are_not_valid(counts: dict[str, object]) -> None:
    assert not Newsgroups(60, 1).score({"counts": counts}).valid

"""How simulated agents read posts: really, and with confusion; and what they cannot know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest

from dig.runtime.keyed_random import KeyedRandom
from dig.tasks.newsgroups import Newsgroups
from dig.tasks.newsgroups_posts import GROUPS, Post, our_own, real, sections
from dig.tasks.simulated.classifying import Posts, topic
from dig.tasks.simulated.profile import Profile
from dig.tasks.simulated.simulated_agent import SimulatedAgent

from .test_newsgroups import REAL, everything, needs_data
from .test_simulated import reachable, run
from .turns import PERFECT, see

DRAWS = KeyedRandom(1, "a1", 1)


def accuracy(posts: tuple[Post, ...]) -> float:
    return sum(topic(post.text()) == post.group for post in posts) / len(posts)


def test_every_topic_has_words_that_speak_for_it() -> None:
    assert tuple(sections("keywords.txt")) == GROUPS == tuple(sections("posts.txt"))


def test_the_classifier_knows_most_of_our_own_posts() -> None:
    assert accuracy(our_own()) > 0.85


@needs_data
def test_the_classifier_knows_half_of_the_real_posts() -> None:
    """Blind guessing would know one in twenty."""
    assert REAL is not None
    assert accuracy(real(REAL)) > 0.5


def test_a_post_without_words_is_about_nothing_and_not_counted() -> None:
    assert topic("") is topic("!?") is None
    assert Posts().count(["", "An orbit around the moon"], PERFECT, DRAWS, 0) == {"sci.space": 1}


def test_a_word_weighs_the_more_the_fewer_topics_have_it() -> None:
    """Algorithms are spoken of in two groups, orbits in one."""
    assert topic("algorithm") == "comp.graphics"
    assert topic("algorithm orbit") == "sci.space"


def test_half_of_the_confused_posts_are_skipped_and_half_go_to_the_usual_topic() -> None:
    confused = Profile(confusion=1.0, confusion_growth=0.0, most_confusion=1.0)
    data = ["The goalie of the hockey team"] * 30 + ["An orbit around the moon"] * 20
    counts: Counter[str] = Counter()
    for turn in range(100):
        counts += Posts().count(data, confused, KeyedRandom(1, "a1", turn), 0)
    assert counts.keys() == {"rec.sport.hockey"}
    assert counts["rec.sport.hockey"] == pytest.approx(2500, rel=0.1)


def test_the_more_posts_are_read_at_once_the_more_are_confused() -> None:
    profile = Profile(confusion=0.4, confusion_growth=2.0, most_confusion=0.5)
    assert [profile.confusion_for(posts) for posts in (20, 40, 80)] == [0.1, 0.4, 0.5]


@pytest.mark.parametrize("agents", [1, 3, 6])
def test_a_perfect_team_finds_what_the_classifier_finds(agents: int) -> None:
    """However the work is split, and whoever does it."""
    task = Newsgroups(100, 2)
    result = run(task, agents, 1, PERFECT, agent=sorter)
    found = Counter(filter(None, map(topic, everything(task))))
    assert result.answer["counts"] == found
    assert result.raised() == {}


def sorter(seed: int, profile: Profile) -> SimulatedAgent:
    return SimulatedAgent(seed, profile, Posts())


def test_no_path_leads_from_a_view_or_an_agent_to_the_true_topics() -> None:
    task = Newsgroups(60, 1)
    view = replace(see(), tools=task.tools())
    things = list(reachable((view, sorter(1, PERFECT)), {}))
    assert any(callable(thing) for thing in things), "the tools are looked into"
    assert not any(isinstance(thing, Newsgroups | Post) for thing in things)
    truth = dict(task._truth)
    assert not any(isinstance(thing, Mapping) and dict(thing) == truth for thing in things)


def test_nothing_that_an_agent_does_depends_on_the_true_topics() -> None:
    def answers(truth: Counter[str] | None) -> list[object]:
        task = Newsgroups(60, 1)
        if truth is not None:
            task._truth = truth
        return [run(task, 3, seed, Profile(), agent=sorter).answer for seed in range(5)]

    assert answers(None) == answers(Counter()) == answers(Counter({"sci.med": 10**6}))

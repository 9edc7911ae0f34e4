"""Long texts with pass keys at known places, in the form that a small model can answer: a line of the text begun again.

The same seed gives the same text. As in src/evaluate/retrieval_tasks.cpp, whose questions `cascade eval` asks.
"""
from __future__ import annotations

import random
from dataclasses import dataclass

HEAD = "There is important information hidden in the following text. Remember it.\n\n"
OWNERS = ("Anna", "Boris", "Clara", "David", "Emma", "Felix", "Greta", "Hugo", "Irene", "Jonas", "Laura", "Martin")
PEOPLE = ("The baker", "The gardener", "A young teacher", "The old sailor", "The clerk", "A tired guest", "The carpenter",
          "Her neighbour", "The librarian", "A small child", "The farmer", "His sister", "The postman", "The cook")
DEEDS = ("walked to", "looked at", "talked about", "waited near", "painted", "remembered", "swept", "returned to",
         "described", "visited", "sketched", "thought about")
SIGHTS = ("the stone steps", "the town hall", "the empty field", "the old mill", "the harbour", "the narrow street",
          "the apple trees", "the wooden hut", "the little station", "the river bank", "the church yard", "the school")
TIMES = ("in the morning", "after lunch", "before the rain came", "on a cold evening", "while the choir sang",
         "during the long summer", "as the sun went down", "when the shops closed", "without saying a word")
TOKENS_OF_SENTENCE = 11.5  # of SmolLM2's vocabulary, on average


@dataclass(frozen=True)
class Fact:
    owner: str
    key: str
    depth: float  # 0 at the beginning, 1 at the end

    @property
    def question(self) -> str:
        return f"\n\nThe pass key of {self.owner} is"

    def is_answered_by(self, text: str) -> bool:
        return text.lstrip().startswith(self.key)


def filler(draws: random.Random, tokens: float) -> list[str]:
    count = max(1, round(tokens / TOKENS_OF_SENTENCE))
    return [f"{draws.choice(PEOPLE)} {draws.choice(DEEDS)} {draws.choice(SIGHTS)} {draws.choice(TIMES)}." for _ in range(count)]


def text_with_keys(seed: int, tokens: int, depths: list[float]) -> tuple[str, list[Fact]]:
    """A text of about so many tokens, without a question at its end. The keys begin with different digits, as a
    likeliest token must tell them apart."""
    assert len(depths) <= 9, "there are nine digits to begin with"
    draws = random.Random(seed)
    owners, digits = draws.sample(OWNERS, len(depths)), draws.sample("123456789", len(depths))
    facts = [Fact(owner, digit + "".join(draws.choices("0123456789", k=4)), depth)
             for owner, digit, depth in zip(owners, digits, sorted(depths))]
    sentences = filler(draws, tokens - 14 * len(facts))
    for fact in reversed(facts):
        sentences.insert(round(fact.depth * len(sentences)), f"The pass key of {fact.owner} is {fact.key}.")
    return HEAD + " ".join(sentences), facts

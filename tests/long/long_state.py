"""What a long run has done so far, in build/long/state.json: it goes on where it was stopped."""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from campaigns import Campaign


@dataclass
class Progress:
    """What was done of one campaign. skipped: rounds of which no test ran. failed: (seed, name of
    the log) of each round that failed. counts: what its tests tell by counts.py."""

    rounds: int = 0
    skipped: int = 0
    seconds: float = 0.0
    failed: list[tuple[int, str]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def add_counts(self, counts: dict[str, int]) -> None:
        for what, number in counts.items():
            self.counts[what] = self.counts.get(what, 0) + number

    def add(self, other: Progress) -> None:
        self.rounds += other.rounds
        self.skipped += other.skipped
        self.seconds += other.seconds
        self.failed += other.failed
        self.add_counts(other.counts)

    def share(self, campaign: Campaign, factor: float) -> float:
        """Of its budget; 1: done."""
        if campaign.minutes:
            return self.seconds / (60 * campaign.minutes * factor)
        return self.rounds / wanted(campaign, factor)


def wanted(campaign: Campaign, factor: float) -> int:
    return max(round(campaign.rounds * factor), 1)


@dataclass
class LongState:
    """Belongs to one run at a time. seed: that from which all others follow."""

    folder: Path
    seed: int
    progress: dict[str, Progress] = field(default_factory=dict)

    @staticmethod
    def load(folder: Path, seed: int | None) -> LongState:
        """Go on with what is there, unless another seed is asked for."""
        path = folder / "state.json"
        if path.exists():
            found = json.loads(path.read_text())
            if seed in (None, found["seed"]):
                progress = {name: Progress(**each) for name, each in found["progress"].items()}
                return LongState(folder, found["seed"], progress)
        return LongState(folder, random.SystemRandom().randrange(1 << 30) if seed is None else seed)

    def save(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "state.json"
        partly = path.with_suffix(".new")
        document = {name: asdict(each) for name, each in self.progress.items()}
        partly.write_text(json.dumps({"seed": self.seed, "progress": document}, indent=1))
        os.replace(partly, path)

    def of(self, campaign: Campaign) -> Progress:
        return self.progress.setdefault(campaign.name, Progress())

    def next_seed(self, campaign: Campaign) -> int:
        """Of the next round; below 2^30, so that what is added to it still fits 32 bits."""
        text = f"{self.seed} {campaign.name} {self.of(campaign).rounds}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 2

    def least_done(self, campaigns: Iterable[Campaign], factor: float) -> Campaign | None:
        """The campaign that is furthest from its end, so that a stopped run has seen something of
        each; None: all are done."""
        shares = {each: self.of(each).share(each, factor) for each in campaigns}
        found = min(shares, key=lambda each: shares[each], default=None)
        return None if found is None or shares[found] >= 1 else found

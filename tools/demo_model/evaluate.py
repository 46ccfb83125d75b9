#!/usr/bin/env python3
"""Measures the demo model on a running server: answers about new stories, and stories of its own.

Questions: stories made only of combinations that training never saw, one question per request, greedy; an answer counts when
it is exactly the expected one. Stories: sampled at temperature 0.7 from the bare prompt; one counts when the
checker can read every sentence and finds no contradiction. Exit code 1 below 90 % in either.

Example: tools/demo_model/evaluate --server 127.0.0.1:50051 --seed 1
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from checker import find_contradiction
from generator import STORY_PROMPT, make_story, question_prompt
from questions import Question, all_questions
from server_engine import Output, Request, generate

BAR = 0.90
QUESTIONS_PER_STORY = 4
STORY_TEMPERATURE = 0.7
PROGRAM = Path(__file__).resolve().parents[2] / "bin" / "tandem"

Generate = Callable[[list[Request]], list[Output]]


def make_questions(seed: int, count: int) -> list[tuple[str, Question]]:
    """Prompts with their questions, from held-out stories."""
    rng = random.Random(seed)
    found: list[tuple[str, Question]] = []
    while len(found) < count:
        story = make_story(rng, held_out=True)
        for question in all_questions(story.world, rng)[:QUESTIONS_PER_STORY]:
            found.append((question_prompt(story, question), question))
    return found[:count]


def right_answers(run: Generate, seed: int, count: int, verbose: bool) -> float:
    asked = make_questions(seed, count)
    outputs = run([Request(prompt, 16, 0.0, 0, ["\n"]) for prompt, _ in asked])
    wrong: Counter[str] = Counter()
    for (prompt, question), output in zip(asked, outputs):
        if output.text.strip() != question.answer:
            wrong[question.kind] += 1
            if verbose:
                print(f"{prompt}{output.text}\n  expected: {question.answer}\n")
    if verbose:
        total = Counter(question.kind for _, question in asked)
        for kind in sorted(total):
            print(f"  {kind}: {total[kind] - wrong[kind]} of {total[kind]}")
    return 1 - wrong.total() / count


def sound_stories(run: Generate, seed: int, count: int, verbose: bool) -> float:
    rng = random.Random(seed)
    requests = [Request(STORY_PROMPT, 250, STORY_TEMPERATURE, rng.randrange(2**31), ["\n"])
                for _ in range(count)]
    texts = [output.text.strip() for output in run(requests)]
    sound = 0
    for text in texts:
        problem = find_contradiction(text)
        sound += problem is None
        if verbose and problem:
            print(f"{text}\n  {problem}\n")
    if verbose:
        print(f"  {len(set(texts))} different stories; the first: {texts[0]}")
    return sound / count


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--server", metavar="ADDR", help="address of a running server")
    where.add_argument("--torch", metavar="CHECKPOINT", type=Path, help="a training checkpoint instead")
    parser.add_argument("--unquantised", action="store_true", help="with --torch: the F32 weights")
    parser.add_argument("--program", type=Path, default=PROGRAM, help="the tandem program (bin/tandem)")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--stories", type=int, default=200)
    parser.add_argument("--verbose", action="store_true", help="print what went wrong")
    return parser.parse_args()


def main() -> int:
    args = parse_arguments()
    if args.torch:
        from torch_engine import TorchEngine  # torch is needed for this alone
        run: Generate = TorchEngine(args.torch, quantised=not args.unquantised).generate
    else:
        def run(requests: list[Request]) -> list[Output]:
            return generate(args.program, args.server, requests)

    answers = right_answers(run, args.seed, args.questions, args.verbose)
    print(f"answers right: {answers:.1%} of {args.questions} questions", flush=True)
    stories = sound_stories(run, args.seed, args.stories, args.verbose)
    print(f"stories without contradiction: {stories:.1%} of {args.stories}")
    return 0 if answers >= BAR and stories >= BAR else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, RuntimeError) as error:
        sys.exit(f"evaluate: {error}")

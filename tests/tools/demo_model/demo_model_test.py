"""Tests of the demo model's generator, held-out rule, checker, tokenizer and file writer. Needs no torch."""

from __future__ import annotations

import random
import re
import struct
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).absolute().parents[3]
sys.path.insert(0, str(ROOT / "tools" / "demo_model"))

import bpe  # noqa: E402
import gguf_writer  # noqa: E402
import words  # noqa: E402
from checker import find_contradiction, find_fault, parse_sentence, split_sentences  # noqa: E402
from exercises import links, pairs  # noqa: E402
from generator import make_story, training_text  # noqa: E402
from holdout import place_held_out, thing_held_out  # noqa: E402
from questions import all_questions  # noqa: E402


def combinations(text: str) -> tuple[set[tuple[str, str, str]], set[tuple[str, str]]]:
    """(person, colour, thing) and (person, place) that a story states, read from its text alone."""
    things, places = set(), set()
    colours: dict[str, str] = {}
    subject = None
    sentences = split_sentences(text)
    for i, sentence in enumerate(sentences):
        if i == 0 and sentence.startswith("One "):
            sentence = sentence.split(", ", 1)[1]
        parsed = parse_sentence(sentence)
        if parsed is None:  # the opening sentence
            continue
        slots = parsed.slots
        person = slots.get("N", subject)
        if "C" in slots:
            colours[slots["T"]] = slots["C"]
        if parsed.kind == "own_plain":
            colours[slots["T"]] = sentences[i + 1].rstrip(".").rsplit(" ", 1)[1]
        if parsed.kind in ("own", "own_pronoun", "own_plain", "at_own", "again", "give", "put"):
            things.add((person, colours[slots["T"]], slots["T"]))
        if parsed.kind == "give":
            things.add((slots["M"], colours[slots["T"]], slots["T"]))
        if "P" in slots:
            places.add((person, slots["P"]))
        if parsed.kind == "at_both":
            places.add((slots["M"], slots["P"]))
        subject = person
    return things, places


class FaultsHaveAPlace(unittest.TestCase):
    def test_the_first_sentence_at_fault_is_pointed_at(self) -> None:
        story = ("One sunny day, Anna had a red ball. Ben was in the garden. Anna gave the red ball to Anna. "
                 "Then Ben went to the lake.")
        fault = find_fault(story)
        self.assertIsNotNone(fault)
        self.assertEqual(story[fault.begin:fault.end], "Anna gave the red ball to Anna.")
        self.assertIn("one person", fault.problem)

    def test_a_fault_in_the_first_sentence_includes_its_opening(self) -> None:
        story = "One sunny day, Anna had. Ben was in the garden."
        fault = find_fault(story)
        self.assertEqual(story[fault.begin:fault.end], "One sunny day, Anna had.")


class HeldOutRule(unittest.TestCase):
    def test_training_stories_state_no_held_out_combination(self) -> None:
        rng = random.Random(1)
        for _ in range(2000):
            things, places = combinations(make_story(rng, held_out=False).text)
            self.assertFalse([t for t in things if thing_held_out(*t)])
            self.assertFalse([p for p in places if place_held_out(*p)])

    def test_evaluation_stories_state_only_held_out_combinations(self) -> None:
        rng = random.Random(2)
        for _ in range(1000):
            things, places = combinations(make_story(rng, held_out=True).text)
            self.assertTrue(things or places)
            self.assertFalse([t for t in things if not thing_held_out(*t)])
            self.assertFalse([p for p in places if not place_held_out(*p)])

    def test_holds_out_about_a_fifth(self) -> None:
        pairs = [place_held_out(person, place) for person in words.PEOPLE for place in words.PLACES]
        self.assertAlmostEqual(sum(pairs) / len(pairs), 0.2, delta=0.02)


class WordLists(unittest.TestCase):
    def test_no_word_twice_and_no_word_with_two_meanings(self) -> None:
        for group in (words.PEOPLE, words.COLOURS, words.THINGS, words.PLACES, words.SPOTS):
            self.assertEqual(len(group), len(set(group)))
        self.assertFalse(set(words.PLACES) & set(words.SPOTS))
        self.assertFalse(set(words.COLOURS) & set(words.THINGS))
        destinations = [words.destination(place) for place in words.PLACES]
        self.assertEqual(len(destinations), len(set(destinations)))
        self.assertFalse([thing for thing in words.THINGS if words.article(thing) == "an"])


class Generator(unittest.TestCase):
    def test_same_seed_same_text(self) -> None:
        self.assertEqual(training_text(random.Random(5)), training_text(random.Random(5)))
        self.assertNotEqual(training_text(random.Random(5)), training_text(random.Random(6)))

    def test_answers_use_words_of_the_story(self) -> None:
        own = set("The is has have belongs to came went from was put there by we find In At On a an".split())
        rng = random.Random(3)
        for _ in range(300):
            story = make_story(rng)
            told = set(re.findall(r"[A-Za-z]+", story.text))
            for question in all_questions(story.world, rng):
                self.assertTrue(question.text.endswith("?"))
                used = set(re.findall(r"[A-Za-z]+(?!')", question.answer.replace("'s", "")))
                self.assertFalse({w for w in used - told - own if w not in ("in", "at", "on")}, story.text)

    def test_known_story_gives_known_answers(self) -> None:
        from world import World
        world = World()
        world.own("Anna", "red", "ball")
        world.at("Anna", "in the garden")
        world.at("Ben", "at the well")
        world.give("Anna", "Ben", "red", "ball")
        world.move("Anna", "on the hill")
        asked = {(q.kind, q.answer.replace("The red ball", "The ball"))
                 for q in all_questions(world, random.Random(0))}
        self.assertEqual(asked, {
            ("colour", "The ball is red."), ("colour", "Ben's ball is red."),
            ("who has", "The ball belongs to Ben."), ("who gave", "The ball came from Anna."),
            ("who got", "The ball went to Ben."), ("what has", "Ben has a red ball."),
            ("where person", "Anna is on the hill."), ("where person", "Ben is at the well."),
            ("who is at", "On the hill we find Anna."), ("who is at", "At the well we find Ben."),
        })


    def test_exercises_mark_only_what_was_said_before(self) -> None:
        rng = random.Random(7)
        for make in (pairs, links):
            for _ in range(200):
                said = ""
                for piece, known in make(rng):
                    if known:
                        last_word = piece.rsplit(" ", 1)[1]
                        self.assertIn(last_word.lower(), said.lower())
                    said += piece


class Checker(unittest.TestCase):
    def test_accepts_what_the_generator_writes(self) -> None:
        rng = random.Random(4)
        for _ in range(2000):
            story = make_story(rng, held_out=rng.random() < 0.5)
            self.assertIsNone(find_contradiction(story.text), story.text)

    def test_reads_the_state_the_generator_had(self) -> None:
        from checker import StoryChecker
        rng = random.Random(5)
        for _ in range(500):
            story = make_story(rng)
            checker = StoryChecker()
            for i, sentence in enumerate(split_sentences(story.text)):
                if i == 0 and sentence.startswith(("One ", "It was a ")):
                    if sentence.startswith("It"):
                        continue
                    sentence = sentence.split(", ", 1)[1]
                checker.apply(parse_sentence(sentence))
            self.assertEqual(checker.world, story.world)

    def test_names_each_kind_of_contradiction(self) -> None:
        cases = {
            "": "no story",
            "It was a warm day.": "about nobody",
            "Anna had a red ball. Anna gave the blue ball to Ben.": "was red, not blue",
            "Anna had a red ball. Ben had a red ball.": "second time",
            "Anna had a red ball. Ben sat in the garden. Anna gave the ball": "not a sentence",
            "Anna had a red ball. Ben sat in the garden. Ben put the red ball on the shelf.":
                "Anna has the ball, not Ben",
            "Anna had a red ball. Anna put the red ball on the shelf. Anna was proud of the red ball.":
                "nobody has",
            "Anna sat in the garden. Anna waited in the park.": "already in the garden",
            "Anna sat in the garden. Then Anna went to the garden.": "goes to where",
            "Anna sat in the garden. Then Ben went to the park.": "never came",
            "Anna had a red ball. Anna gave the red ball to Ben.": "gives the ball to Ben",
            "Anna had a red ball. Anna gave Anna the red ball.": "one person",
            "Anna sat in the garden. He had a red ball.": "He cannot mean Anna",
            "Anna loved his red ball.": "his cannot mean Anna",
            "He had a red ball.": "nobody to mean",
            "It was a cold day. She had a red ball.": "nobody to mean",
            "Anna put the red ball on the shelf.": "never named",
            "Anna had a ball. The ball was red. The ball was blue.": "was red, not blue",
            "Anna had a elephant.": "not a sentence",
            "Anna had an red ball.": "not a sentence",
        }
        for text, expected in cases.items():
            with self.subTest(text):
                self.assertIn(expected, find_contradiction(text))


class Tokenizer(unittest.TestCase):
    def setUp(self) -> None:
        self.tokenizer = bpe.Tokenizer.load(ROOT / "tools" / "demo_model" / "tokenizer.json")

    def test_round_trip(self) -> None:
        rng = random.Random(6)
        for _ in range(300):
            text = training_text(rng)
            self.assertEqual(self.tokenizer.decode(self.tokenizer.encode(text)), text)
        odd = "Ünïcödé \U0001f9a9 {}~ 12\t\n\n x"
        self.assertEqual(self.tokenizer.decode(self.tokenizer.encode(odd)), odd)

    def test_every_word_of_the_lists_is_one_token(self) -> None:
        for word in [*words.PEOPLE, *words.COLOURS, *words.THINGS]:
            self.assertEqual(len(self.tokenizer.encode(" " + word)), 1, word)

    def test_tokens_are_unique_and_cover_all_bytes(self) -> None:
        self.assertEqual(len(set(self.tokenizer.tokens)), len(self.tokenizer.tokens))
        self.assertEqual(len(bpe.ALPHABET), 256)
        self.assertTrue(set(bpe.ALPHABET.values()) <= set(self.tokenizer.tokens))
        self.assertEqual(bpe.ALPHABET[ord(" ")], "\u0120")


class GgufWriter(unittest.TestCase):
    def test_layout(self) -> None:
        g = gguf_writer
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tiny.gguf"
            g.write_gguf(path, [g.Metadata("k", g.ARRAY, ["a", "bc"], g.STRING)],
                         [g.Tensor("t", g.TYPE_F32, (2, 3), lambda: (bytes(range(24)),)),
                          g.Tensor("u", g.TYPE_F32, (1,), lambda: (b"wxyz",))])
            data = path.read_bytes()
        self.assertEqual(data[:24], b"GGUF" + struct.pack("<IQQ", 3, 2, 1))
        self.assertIn(struct.pack("<Q1sI2QIQ", 1, b"t", 2, 3, 2, 0, 0), data)  # columns before rows
        self.assertIn(struct.pack("<Q1sIQIQ", 1, b"u", 1, 1, 0, 32), data)
        start = data.index(bytes(range(24)))
        self.assertEqual(start % 32, 0)
        self.assertEqual(data[start + 32:start + 36], b"wxyz")

    def test_refuses_wrong_sizes(self) -> None:
        g = gguf_writer
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(ValueError):
                g.write_gguf(Path(folder) / "a", [], [g.Tensor("t", g.TYPE_F32, (2,), lambda: (b"1234",))])
            with self.assertRaises(ValueError):
                g.write_gguf(Path(folder) / "b", [], [g.Tensor("t", g.TYPE_Q8_0, (2, 33), lambda: ())])


if __name__ == "__main__":
    unittest.main()

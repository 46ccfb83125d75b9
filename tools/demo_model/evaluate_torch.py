"""Quick measure during training: are answers about held-out stories right, token for token?"""

from __future__ import annotations

import random

import torch

from bpe import Tokenizer
from generator import make_story, question_prompt
from model import DemoModel
from questions import all_questions


@torch.no_grad()
def answer_accuracy(model: DemoModel, tokenizer: Tokenizer, rng: random.Random, num_stories: int) -> float:
    """Share of questions whose whole answer line is the greedy continuation (teacher-forced, so exact)."""
    right = total = 0
    for _ in range(num_stories):
        story = make_story(rng, held_out=True)
        rows = []
        for question in all_questions(story.world, rng)[:4]:
            prompt = [tokenizer.begin_id, *tokenizer.encode(question_prompt(story, question))]
            rows.append((prompt, tokenizer.encode(f" {question.answer}\n")))
        length = max(len(prompt) + len(answer) for prompt, answer in rows)
        ids = torch.tensor([(p + a + [tokenizer.end_id] * length)[:length] for p, a in rows])
        # The newline after the answer may as well be the end of the text.
        best = model.logits(model.hidden_states(ids)).argmax(-1)
        for row, (prompt, answer) in enumerate(rows):
            got = best[row, len(prompt) - 1:len(prompt) + len(answer) - 2].tolist()
            right += got == answer[:-1]
            total += 1
    return right / total

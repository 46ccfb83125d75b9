"""Tests of roofline_svg: well-formed, and all that was measured lies within the axes."""

import sys
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parents[3] / "tools/bench"))

import roofline_svg  # noqa: E402
from samples import Samples  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
TITLES = ("m.gguf <2 threads>", "a processor & its date")
OURS = {1: Samples([50.0, 52.0, 51.0]), 8: Samples([300.0]), 32: Samples([None])}
OTHER = {1: Samples([40.0]), 8: Samples([100.0])}


def limit(batch):
    return min(60 * batch, 1000)


class RooflineSvg(unittest.TestCase):
    def test_well_formed_with_points_curve_and_labels(self):
        root = ElementTree.fromstring(roofline_svg.draw(TITLES, {"Tandem": OURS, "a & b": OTHER}, limit))
        texts = [element.text for element in root.iter(SVG + "text")]
        for words in (*TITLES, "tokens per second", "sequences that decode together", "limit", "Tandem", "a & b", "1", "8", "100"):
            self.assertIn(words, texts)
        self.assertNotIn("32", texts)
        self.assertEqual(len(list(root.iter(SVG + "polyline"))), 3)
        titles = [circle.find(SVG + "title").text for circle in root.iter(SVG + "circle")]
        self.assertEqual(titles[0], "Tandem, batch 1: 51.0 (50.0 to 52.0)")
        self.assertEqual(len(titles), 4)

    def test_all_lies_within_the_axes_and_higher_is_faster(self):
        root = ElementTree.fromstring(roofline_svg.draw(TITLES, {"Tandem": OURS}, limit))
        heights = []
        for line in root.iter(SVG + "polyline"):
            points = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
            for x, y in points:
                self.assertTrue(roofline_svg.LEFT <= x <= roofline_svg.WIDTH - roofline_svg.RIGHT)
                self.assertTrue(roofline_svg.TOP <= y <= roofline_svg.HEIGHT - roofline_svg.BOTTOM)
            heights.append([y for _, y in points])
        roof, ours = heights
        self.assertEqual(roof, sorted(roof, reverse=True))
        self.assertLess(roof[0], ours[0])

    def test_one_batch_and_no_limit(self):
        root = ElementTree.fromstring(roofline_svg.draw(TITLES, {"Tandem": {4: Samples([7.0])}}, lambda batch: None))
        self.assertEqual(len(list(root.iter(SVG + "circle"))), 1)

    def test_nothing_measured(self):
        with self.assertRaisesRegex(ValueError, "nothing to draw"):
            roofline_svg.draw(TITLES, {"Tandem": {1: Samples([None])}}, limit)

    def test_ticks(self):
        self.assertEqual(roofline_svg.ticks(30, 600), [50, 100, 200, 500])


if __name__ == "__main__":
    unittest.main()

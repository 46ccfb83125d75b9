"""Which coordinator answers a request that names a model or an adapter."""

import dataclasses
import sys
import unittest

sys.path.insert(0, "gateway/tandem_gateway")
from gateway.backend import Model  # noqa: E402
from gateway.errors import ApiError  # noqa: E402
from gateway.fleet import Fleet  # noqa: E402


@dataclasses.dataclass
class FakeCoordinator:
    model: Model | None
    in_flight: int = 0
    serving: bool = True


def server(id, *adapters, **fields):
    return FakeCoordinator(Model(id=id, max_model_len=8, chat_template="", bos_token="", eos_token="",
                                 adapters=adapters), **fields)


class FleetTest(unittest.TestCase):

    def error(self, fleet, name):
        with self.assertRaises(ApiError) as caught:
            fleet.pick(name)
        return caught.exception.status, caught.exception.message

    def test_the_least_loaded_of_a_model(self):
        busy, idle = server("m", in_flight=2), server("m", in_flight=1)
        served = Fleet([busy, idle, server("n")]).pick("m")
        self.assertIs(served.coordinator, idle)
        self.assertEqual((served.id, served.adapter), ("m", ""))

    def test_an_adapter_is_asked_of_those_that_have_it(self):
        without, having = server("m"), server("m", "a", in_flight=5)
        fleet = Fleet([having, without])
        served = fleet.pick("a")
        self.assertIs(served.coordinator, having)
        self.assertEqual((served.id, served.adapter), ("a", "a"))
        self.assertIs(fleet.pick("m").coordinator, without)
        self.assertIs(fleet.pick(None).coordinator, without)

    def test_models_have_the_adapters_of_all_their_servers(self):
        fleet = Fleet([server("m", "a", "b"), server("m"), server("m", "b", "c"), FakeCoordinator(None)])
        self.assertEqual([(one.id, one.adapters) for one in fleet.models()], [("m", ("a", "b", "c"))])

    def test_a_models_name_comes_before_an_adapters(self):
        served = Fleet([server("m", "n"), server("n")]).pick("n")
        self.assertEqual((served.coordinator.model.id, served.adapter), ("n", ""))

    def test_an_adapter_of_several_models_is_refused(self):
        fleet = Fleet([server("m", "a"), server("n", "a")])
        self.assertEqual(self.error(fleet, "a"), (400, "several models have an adapter 'a': 'm', 'n'"))

    def test_an_unknown_name_is_refused_with_all(self):
        fleet = Fleet([server("m", "a"), server("n")])
        self.assertEqual(self.error(fleet, "x"), (404, "the model 'x' does not exist; served: 'm', 'a', 'n'"))
        self.assertEqual(self.error(fleet, None), (400, "model is needed: several are served"))

    def test_none_that_serves(self):
        self.assertEqual(self.error(Fleet([server("m", serving=False)]), "m")[0], 503)


if __name__ == "__main__":
    unittest.main()

"""The check of the rooms in `rust/core/src` names what breaks a rule, however it is written, and nothing else."""

from pathlib import Path

import pytest

from scripts import rooms

ORDER = ["base", "state", "schedule"]


def faults(tmp_path: Path, files: dict[str, str]) -> list[str]:
    everything = {"lib.rs": "", **{f"{room}/mod.rs": "" for room in ORDER}} | files
    for name, text in everything.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return rooms.find_faults(rooms.read_modules(tmp_path), ORDER)


@pytest.mark.parametrize(
    "text",
    [
        "use crate::schedule::Cycle;\n",
        "use crate::{base::amount, schedule::{self, Cycle as Round}};\n",
        "fn f() -> super::super::schedule::Cycle {}\n",
        "fn f() { crate::schedule::Cycle::new() }\n",
    ],
)
def test_a_use_of_a_room_further_down_the_table_is_named(tmp_path: Path, text: str) -> None:
    files = {"base/amount.rs": text, "schedule/mod.rs": "pub struct Cycle;\n"}
    found = faults(tmp_path, files)
    assert found
    assert all(fault.startswith("base/amount uses ") for fault in found)
    assert all(fault.endswith("but room schedule is above base") for fault in found)


def test_a_call_of_a_method_that_stands_further_down_is_named(tmp_path: Path) -> None:
    files = {
        "state/mod.rs": "pub struct State;\nimpl State {\n    fn apply(&mut self) {\n        self.run()\n    }\n}\n",
        "schedule/cycle.rs": "use crate::state::State;\nimpl State {\n    pub fn run(&mut self) {\n    }\n}\n",
    }
    assert faults(tmp_path, files) == [
        "state uses State::run of schedule/cycle, but room schedule is above state",
    ]


def test_the_impl_of_a_trait_gives_no_methods_to_call(tmp_path: Path) -> None:
    files = {
        "base/reader.rs": "fn f<D: Deserializer>(deserializer: D) {\n    deserializer.read_any()\n}\n",
        "state/a.rs": "impl<'de> Deserializer<'de> for A {\n    fn read_any(self) {\n    }\n}\n",
        "state/b.rs": "impl<'de, D> Deserializer<'de> for B<D> {\n    fn read_any(self) {\n    }\n}\n",
    }
    assert faults(tmp_path, files) == []


def test_a_row_of_the_table_may_have_several_rooms() -> None:
    table = "| in `rust/wire/src` | what |\n|---|---|\n| `kinds` | kinds |\n| `go_json`, `field_error` | as `go` |\n"
    assert rooms.read_order(table, "rust/wire/src") == ["kinds", "go_json", "field_error"]


def test_a_re_export_belongs_to_its_defining_module(tmp_path: Path) -> None:
    files = {
        "state/mod.rs": "mod a;\nmod b;\npub use a::*;\npub use b::B;\n",
        "state/a.rs": "use super::B;\npub struct A;\n",
        "state/b.rs": "use crate::state::A;\npub struct B;\n",
    }
    assert faults(tmp_path, files) == ["a cycle: state/a uses B of state/b; state/b uses A of state/a"]


def test_parents_and_children_may_use_each_other_and_tests_anything(tmp_path: Path) -> None:
    files = {
        "base/mod.rs": "mod child;\nuse child::Child;\npub struct Parent;\n",
        "base/child.rs": "use super::Parent;\n// crate::schedule::Cycle\npub struct Child;\n"
        "#[cfg(test)]\nmod tests {\n    use crate::schedule::Cycle;\n}\n",
        "base/tests.rs": "use crate::schedule::Cycle;\n",
        "schedule/mod.rs": "use crate::base::Parent;\npub struct Cycle;\n",
    }
    assert faults(tmp_path, files) == []


def test_a_room_that_the_table_does_not_have_is_named(tmp_path: Path) -> None:
    assert faults(tmp_path, {"attic/mod.rs": ""}) == ["attic: is in rust/core/src and not in ARCHITECTURE.md"]

"""docs/api.md lists what is public, and all of it says what it is."""

from scripts.api_page import PAGE, page, undocumented


def test_the_page_is_what_make_api_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make api`"


def test_every_public_class_and_function_says_what_it_is() -> None:
    assert undocumented() == []

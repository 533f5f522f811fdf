//! The engine matches the reference in every recorded world.

use kueuecore_worlds::check;

#[test]
fn recorded_worlds_go_as_the_reference_says_first_part() {
    check(0);
}

#[test]
fn recorded_worlds_go_as_the_reference_says_second_part() {
    check(1);
}

#[test]
fn recorded_worlds_go_as_the_reference_says_third_part() {
    check(2);
}

#[test]
fn recorded_worlds_go_as_the_reference_says_last_part() {
    check(3);
}

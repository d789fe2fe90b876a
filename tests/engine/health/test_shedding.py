from engine.health.shedding import CALM_STEPS, StepBudget


def test_a_step_without_memory_halves_the_budget_until_one_token_is_left() -> None:
    budget = StepBudget(8)
    assert [budget.shrink() for _ in range(4)] == [True, True, True, False]
    assert budget.now == 1


def test_steps_grow_again_after_a_calm_while_and_never_over_what_was_asked_for() -> None:
    budget = StepBudget(6)
    budget.shrink()
    for _ in range(CALM_STEPS - 1):
        budget.went_well()
    assert budget.now == 3
    budget.went_well()
    assert budget.now == 6
    for _ in range(2 * CALM_STEPS):
        budget.went_well()
    assert budget.now == 6


def test_trouble_begins_the_while_anew() -> None:
    budget = StepBudget(4)
    budget.shrink()
    for _ in range(CALM_STEPS - 1):
        budget.went_well()
    budget.shrink()
    budget.went_well()
    assert budget.now == 1

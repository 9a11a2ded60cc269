# What the page should say, found without the dashboard's route: budgets by the closed form of the
# Gaussian mechanism out of the exported ledger, counts out of the stream that was made.
import bisect
import json
import math

import world


def phi(x):
    return .5 * math.erfc(-x / math.sqrt(2))


def delta_of(epsilon, mu):
    """Balle and Wang, 2018: the exact delta of a Gaussian mechanism."""
    return phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2 - epsilon / mu)


def epsilon_of(mu_squared, delta):
    if mu_squared == 0:
        return 0
    low, high, mu = 0, 100, math.sqrt(mu_squared)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle, mu) > delta else (low, middle)
    return high


def three_places(x):
    return f"{x:.3f}"


def whole(n):
    return f"{n:,}"


def ledger_of(programs, store):
    """mu squared and steps by learner, from the events that `tacit ledger export` hands to other
    accountants."""
    exported = json.loads(world.run(programs, "tacit", "ledger", "export", "--checkpoint", store))
    assert all(learner["event"]["class_name"] == "GaussianDpEvent"
               for learner in exported["learners"]), exported
    return {learner["learner"]: (learner["event"]["noise_multiplier"] ** -2, learner["steps"])
            for learner in exported["learners"]}


def expected(programs, stream, store, budgets, total_budget, last_day):
    """The figures of a page of a daemon that learnt the last file: text by name."""
    want = {}
    ledger = ledger_of(programs, store)
    mu = {learner: squared for learner, (squared, _) in ledger.items()}
    assert ledger["users"][1] == world.FILES * world.LINES // world.BATCH, ledger
    for learner, budget in budgets.items():
        epsilon = epsilon_of(mu[learner], 1e-6)
        key = "learner " + learner
        want[f"spent {key}"] = three_places(epsilon)
        want[f"left {key}"] = three_places(budget - epsilon)
        want[f"budget {key}"] = str(budget)
        want[f"steps {key}"] = whole(ledger[learner][1])
    all_of_it = epsilon_of(sum(mu.values()), 1e-6)
    want["spent total"] = three_places(all_of_it)
    want["left total"] = three_places(total_budget - all_of_it)
    # Of the stream.
    bad = sum(world.BAD.values())
    want["read"] = whole(world.LINES)
    want["ahead"] = "0"
    want["dead"] = whole(bad)
    for part, count in world.BAD.items():
        want[f"dead {part}"] = whole(count)
    want["taken sums"], want["taken users"] = "1", whole(world.LINES // world.BATCH)
    want["examples sums"] = whole(int(float(f"{world.LINES - bad:.3g}")))
    # Of the users.
    uses = stream.uses()
    left = [world.ALLOWANCE - used for used in uses.values()]
    quarters = [0] * 5
    for one in left:
        quarters[0 if one == 0 else math.ceil(4 * one / world.ALLOWANCE)] += 1
    want["allowance users"] = whole(world.ALLOWANCE)
    want["users users"] = whole(len(uses))
    for i, count in enumerate(quarters):
        want[f"users users {i}"] = whole(count)
    return want


def entropy_and_calibration(scores, labels):
    loss = -sum(math.log(p if label else 1 - p) for p, label in zip(scores, labels))
    rate = sum(labels) / len(labels)
    constant = -(rate * math.log(rate) + (1 - rate) * math.log(1 - rate)) * len(labels)
    return loss / constant, sum(scores) / sum(labels)


BINS = 1 << 14  # the daemon counts predictions in bins of probability; within one, pairs are ties


def auc(scores, labels):
    scores = [int(score * BINS) for score in scores]
    clicks = sorted(s for s, label in zip(scores, labels) if label)
    others = [s for s, label in zip(scores, labels) if not label]
    not_above = sum((bisect.bisect_left(clicks, s) + bisect.bisect_right(clicks, s)) / 2
                    for s in others)
    return 1 - not_above / (len(clicks) * len(others))

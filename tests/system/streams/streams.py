"""Six streams that nobody has seen, as unlike each other as they can be, each with a truth known to its maker.

streams.py STREAM FOLDER [--seed N] [--records N] writes one and prints its truth. A label is drawn by a probability
that its maker knows, so that no honest figure is better than `auc`. Traps are put in on purpose, and the truth
names them.
"""

import argparse
import collections
import dataclasses
import datetime
import gzip
import json
import math
import pathlib
import random

HEAVY_SHARE = .03
REMEMBERED = 200  # items of a user (history.items)
HELD_OUT = .2  # the part at the end that the truth's figures are about
EPOCH = datetime.datetime(2024, 3, 1, 6, 0, 0, tzinfo=datetime.timezone.utc)


@dataclasses.dataclass
class Truth:
    """The facts about a stream that only its maker knows."""

    files: list[str]
    records: int
    label: str  # as inspect names fields
    auc: float = 0  # of the true probabilities, over the records held out
    deviation: float = 0  # of the AUC of that sample
    ones: int = 0
    positive: str = "1"  # the text of a success
    words: list[str] = dataclasses.field(default_factory=list)
    user: str | None = None
    nobody: dict[str, float] = dataclasses.field(default_factory=dict)  # placeholder: share of the records
    heavy: int = 0  # real users with more than HEAVY_SHARE of the records
    leaks: list[str] = dataclasses.field(default_factory=list)
    ids: list[str] = dataclasses.field(default_factory=list)  # whole numbers that are names
    clean: list[str] = dataclasses.field(default_factory=list)  # features that no warning may name
    items: str | None = None  # the file of the public list
    next_asked: int = 0  # users whose next item is asked for, in the records held out
    next_hit: float = 0  # HIT@10 for them by the true odds of each item
    rows: list[str] = dataclasses.field(default_factory=list)  # last records, as the stream has them


def area_under_curve(scores, labels):
    """AUC by the sum of ranks, with its deviation (Hanley and McNeil)."""
    ranked = sorted(zip(scores, labels))
    ones = sum(labels)
    zeros = len(labels) - ones
    rank_sum, i = 0, 0
    while i < len(ranked):
        end = i
        while end < len(ranked) and ranked[end][0] == ranked[i][0]:
            end += 1
        rank_sum += sum(label for _, label in ranked[i:end]) * (i + 1 + end) / 2
        i = end
    auc = (rank_sum - ones * (ones + 1) / 2) / (ones * zeros)
    q1, q2 = auc / (2 - auc), 2 * auc * auc / (1 + auc)
    variance = (auc * (1 - auc) + (ones - 1) * (q1 - auc * auc) + (zeros - 1) * (q2 - auc * auc)) / (ones * zeros)
    return auc, math.sqrt(variance)


class Walk:
    """Items that people take: often one of three that follow the last one taken, else by popularity.

    An item counts as taken where the label is 1, and the exam asks for a user's first new item.
    """

    def __init__(self, make, items, follows, power):
        self.make, self.follows, self.popular = make, follows, make.skewed(items, power)
        self.after = [make.rng.sample(range(items), 3) for _ in range(items)]
        self.last, self.taken = {}, []

    def offer(self, user):
        if user in self.last and self.make.rng.random() < self.follows:
            return self.make.rng.choice(self.after[self.last[user]])
        return self.make.draw(self.popular)

    def take(self, user, item, record):
        self.last[user] = item
        self.taken.append((record, user, item))

    def judge(self, truth, chance):
        """Asks for each user's next item by the true odds; `chance` is that of a 1, by item."""
        first = round((1 - HELD_OUT) * truth.records)
        before, fresh = {}, {}
        for record, user, item in self.taken:
            (before if record < first else fresh).setdefault(user, []).append(item)
        shares = [right - left for left, right in zip([0, *self.popular], self.popular)]
        common = [(1 - self.follows) * share / self.popular[-1] * odds for share, odds in zip(shares, chance)]
        hits = 0
        for user in fresh.keys() & before.keys():
            seen = set(before[user][-REMEMBERED:])
            answer = next((item for item in fresh[user][:16] if item not in seen), None)
            if answer is None:
                continue
            odds = list(common)
            for item in self.after[before[user][-1]]:
                odds[item] += self.follows / 3 * chance[item]
            better = sum(odds[item] > odds[answer] for item in range(len(odds)) if item not in seen)
            truth.next_asked += 1
            hits += better < 10
        truth.next_hit = hits / max(1, truth.next_asked)


def chance_of(odds):
    return 1 / (1 + math.exp(-odds))


class Maker:
    """Draws labels by odds that add up, and remembers them for the truth."""

    def __init__(self, seed, records):
        self.rng, self.records = random.Random(seed), records
        self.probabilities, self.labels = [], []

    def effects(self, count, spread):
        return [self.rng.gauss(0, spread) for _ in range(count)]

    def skewed(self, count, power=1.0):
        """Weights of a Zipf law, shuffled, as running sums."""
        weights = [1 / (i + 1) ** power for i in range(count)]
        self.rng.shuffle(weights)
        total, sums = 0, []
        for weight in weights:
            total += weight
            sums.append(total)
        return sums

    def draw(self, sums):
        return self.rng.choices(range(len(sums)), cum_weights=sums)[0]

    def label(self, odds):
        probability = chance_of(odds)
        self.probabilities.append(probability)
        self.labels.append(int(self.rng.random() < probability))
        return self.labels[-1]

    def judge(self, truth):
        """Fills in the figures of the truth."""
        first = round((1 - HELD_OUT) * len(self.labels))
        truth.auc, truth.deviation = area_under_curve(self.probabilities[first:], self.labels[first:])
        truth.ones = sum(self.labels)
        return truth


def heavy_users(users, nobody=()):
    counts = collections.Counter(users)
    return sum(count > HEAVY_SHARE * len(users) for user, count in counts.items() if user not in nobody)


def sql_time(seconds):
    return (EPOCH + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S")


def write_lines(path, lines, header=None):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8") as file:
        for line in ([header] if header else []) + lines:
            file.write(line + "\n")
    return str(path)


def ratings(folder, seed, records):
    """Stars for films by people, and by one who rates without end. Ids are numbers, times have no zone."""
    make = Maker(seed, records)
    rng = make.rng
    films, people, genres = 400, records // 12, 8
    walk = Walk(make, films, follows=0, power=.8)
    quality, taste = make.effects(films, .7), make.effects(genres, .6)
    # A film's number says nothing of its quality: near numbers are no near films.
    numbers = rng.sample(range(1000, 90_000), films)
    lines = []
    for i in range(records):
        who = 4_000_017 if rng.random() < .07 else 1_000_000 + rng.randrange(people)
        film = walk.offer(who)
        genre = film % genres
        if liked := make.label(-.1 + quality[film] + taste[genre]):
            walk.take(who, film, i)
        stars = rng.choice((4, 5)) if liked else rng.choices((1, 2, 3), (1, 2, 5))[0]
        lines.append(f"{who},{numbers[film]},genre-{genre},{sql_time(40 * i)},{stars}")
    catalogue = write_lines(folder / "films.dat", [f"{number}" for number in sorted(numbers)])
    truth = Truth(
        files=[write_lines(folder / "ratings.csv", lines, "userId,movieId,genre,rated_on,rating")], records=records,
        label="rating", user="userId", heavy=heavy_users([line.split(",")[0] for line in lines]), ids=["movieId"],
        clean=["genre", "movieId"], items=catalogue, rows=lines[-20:])
    walk.judge(truth, [chance_of(-.1 + quality[film] + taste[film % genres]) for film in range(films)])
    return make.judge(truth)


def sessions(folder, seed, records):
    """A shop's funnel of views, carts and sales. What was paid is filled in for sales alone."""
    make = Maker(seed, records)
    rng = make.rng
    products, visitors, groups = 300, records // 80, 12
    walk = Walk(make, products, follows=.6, power=.7)
    wanted, cheap = make.effects(products, .5), make.effects(groups, .8)
    numbers = rng.sample(range(10_000, 9_999_999), products)
    lines = []
    for i in range(records):
        who = rng.randrange(visitors)
        product = walk.offer(who)
        group, price = product % groups, round(5 + 60 * rng.random(), 2)
        if sold := make.label(-2.6 + wanted[product] + cheap[group] - .02 * (price - 35)):
            walk.take(who, product, i)
        event = "sold" if sold else rng.choices(("view", "cart"), (5, 1))[0]
        paid = f"{price * rng.choice((1, 1, 2)):.2f}" if sold else ""
        lines.append(f"{sql_time(25 * i)}\t{event}\t{numbers[product]}\tgroup-{group}\t{price}\tv{who:06}\t{paid}")
    header = "event_time\tevent_type\tproduct_id\tcategory\tprice\tvisitor_id\tamount_paid"
    catalogue = write_lines(folder / "products.dat", [f"{number}" for number in sorted(numbers)])
    truth = Truth(
        files=[write_lines(folder / "sessions.tsv", lines, header)], records=records, label="event_type",
        positive="sold", words=["view", "cart", "sold"], user="visitor_id", leaks=["amount_paid"],
        ids=["product_id"], clean=["category", "price", "product_id"], items=catalogue, rows=lines[-20:])
    walk.judge(truth, [chance_of(-2.6 + wanted[product] + cheap[product % groups]) for product in range(products)])
    return make.judge(truth)


def ads(folder, seed, records):
    """Ads with .3 % of clicks and no users. How long somebody stayed is known of clicks alone."""
    make = Maker(seed, records)
    rng = make.rng
    campaigns, slots = 900, 6
    popular, pull, place = make.skewed(campaigns), make.effects(campaigns, .5), make.effects(slots, .8)
    numbers = rng.sample(range(100_000, 999_999), campaigns)
    devices = {"phone": .5, "desktop": -.4, "tablet": 0, "tv": -1}
    lines = []
    for i in range(records):
        campaign, slot, device = make.draw(popular), rng.randrange(slots), rng.choice(list(devices))
        bid = round(rng.lognormvariate(0, .5), 3)
        clicked = make.label(-6.4 + pull[campaign] + place[slot] + devices[device] + .3 * math.log(bid))
        stayed = str(rng.randrange(200, 90_000)) if clicked else ""
        lines.append(f"{1_709_272_800 + i // 3},{numbers[campaign]},s{slot},{device},{bid},{stayed},{clicked}")
    return make.judge(Truth(
        files=[write_lines(folder / "ads.csv.gz", lines, "ts,campaign_id,slot,device,bid,stayed_ms,click")],
        records=records, label="click", leaks=["stayed_ms"], ids=["campaign_id"],
        clean=["slot", "device", "bid", "campaign_id"], rows=lines[-20:]))


def service_log(folder, seed, records):
    """A log of calls: a third by nobody, under three texts, some by a robot. No word of the label is a success."""
    make = Maker(seed, records)
    rng = make.rng
    visitors = records // 25
    nobody = {"guest": .2, "-1": .08, "0000": .06}
    pages, sources = make.effects(40, .8), make.effects(9, .5)
    popular = make.skewed(40)
    lines = []
    for i in range(records):
        drawn, who = rng.random(), ""
        for text, share in nobody.items():
            if not who and drawn < share:
                who = text
            drawn -= share
        if not who:
            who = "crawler-7" if rng.random() < .09 else f"m{int(visitors * rng.random() ** 2):05}"
        page, source = make.draw(popular), rng.randrange(9)
        took = round(rng.lognormvariate(4, .8), 1)
        failed = make.label(-1.3 + pages[page] + sources[source] + .4 * (math.log(took) - 4))
        at = 1_709_272_800_000 + 9000 * i + rng.randrange(9000)
        lines.append(f"{at};{who};/p/{page};from-{source};{took};{'lapsed' if failed else 'kept'}")
    return make.judge(Truth(
        files=[write_lines(folder / "calls.csv", lines, "time;member;page;source;took;state")], records=records,
        label="state", positive="lapsed", words=["kept", "lapsed"], user="member", nobody=nobody,
        heavy=heavy_users([line.split(";")[1] for line in lines], nobody), clean=["page", "source", "took"],
        rows=lines[-20:]))


def days(folder, seed, records):
    """A small file a day, from a handful of records to thousands. Times are dates alone; three columns are 0 or 1."""
    make = Maker(seed, records)
    rng = make.rng
    files, count = [], 72
    sizes = [rng.lognormvariate(0, 1.4) for _ in range(count)]
    scale = records / sum(sizes)
    sizes = [max(5, round(size * scale)) for size in sizes]
    shops, weather = make.effects(25, .7), {"sun": .5, "rain": -.6, "snow": -.9, "wind": 0}
    last = []
    for day, size in enumerate(sizes):
        date = (EPOCH + datetime.timedelta(days=day)).strftime("%Y-%m-%d")
        lines = []
        for _ in range(size):
            shop, sky, promoted = rng.randrange(25), rng.choice(list(weather)), int(rng.random() < .3)
            warmth = round(rng.gauss(12, 7), 1)
            sold_out = make.label(-.9 + shops[shop] + weather[sky] + .8 * promoted + .04 * (warmth - 12))
            lines.append(json.dumps({"date": date, "shop": f"shop-{shop}", "sky": sky, "warmth": warmth,
                                     "promoted": promoted, "sold_out": sold_out}))
        last = (last + lines)[-20:]
        files.append(write_lines(folder / f"{date}.jsonl.gz", lines))
    return make.judge(Truth(files=files, records=sum(sizes), label="/sold_out",
                            clean=["/shop", "/sky", "/warmth", "/promoted"], rows=last))


def offers(folder, seed, records):
    """Nested JSON for a topic: users deep inside, some of them nobody. Money is spent where an offer was taken."""
    make = Maker(seed, records)
    rng = make.rng
    sold, people, places = 250, records // 40, 15
    walk = Walk(make, sold, follows=.5, power=.9)
    pull, place = make.effects(sold, .6), make.effects(places, .6)
    numbers = rng.sample(range(1_000_000, 99_999_999), sold)
    nobody = {"anonymous": .12, "0": .05}
    lines = []
    for i in range(records):
        drawn = rng.random()
        who = "anonymous" if drawn < .12 else "0" if drawn < .17 else f"k{rng.randrange(people):05}"
        offer = walk.offer(who)
        where, price = rng.randrange(places), round(rng.uniform(1, 40), 2)
        if taken := make.label(-1.5 + pull[offer] + place[where] - .03 * (price - 20)):
            walk.take(who, offer, i)
        result = {"clicked": bool(taken)} | ({"spent": round(price * rng.choice((1, 2)), 2)} if taken else {})
        lines.append(json.dumps({
            "at": 1_709_272_800_000 + 5000 * i, "who": {"user": {"id": who}, "city": f"city-{where}"},
            "what": {"item": {"id": numbers[offer]}, "price": price, "tags": [f"t{offer % 7}", f"t{offer % 5}"]},
            "result": result}))
    catalogue = write_lines(folder / "offers.dat", [f"{number}" for number in sorted(numbers)])
    truth = Truth(
        files=[write_lines(folder / "offers.jsonl", lines)], records=records, label="/result/clicked",
        user="/who/user/id", nobody=nobody, leaks=["/result/spent"], ids=["/what/item/id"],
        clean=["/who/city", "/what/price", "/what/tags"], items=catalogue, rows=lines[-20:])
    walk.judge(truth, [chance_of(-1.5 + each) for each in pull])
    return make.judge(truth)


STREAMS = {made.__name__: made for made in (ratings, sessions, ads, service_log, days, offers)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stream", choices=STREAMS)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--records", type=int, default=60_000)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    print(json.dumps(dataclasses.asdict(STREAMS[asked.stream](asked.folder, asked.seed, asked.records)), indent=2))


if __name__ == "__main__":
    main()

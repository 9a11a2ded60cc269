# The operator's dashboard in headless Chromium. Each number is found again without the route that the
# page asks; faults planted in the route and in the page are seen.
#   dashboard_test.py PROGRAMS OUTPUT [unittest's options]
# OUTPUT gets pictures of the page and the time of its first paint.
import hashlib
import json
import os
import pathlib
import shutil
import struct
import sys
import tempfile
import unittest

import browser
import oracle
import world
from proxy import Proxy

PROGRAMS, OUTPUT = sys.argv[1:3]
TOTAL = 13
FIGURES = """Object.fromEntries([...document.querySelectorAll('[data-n]')].map(
    node => [node.dataset.n, node.textContent]))"""


def differences(page, want):
    got = page.eval(FIGURES)
    return {name for name, text in want.items() if got.get(name) != text}


class DashboardTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="tacit-dashboard-")
        os.makedirs(OUTPUT, exist_ok=True)
        cls.daemon = cls.browser = None
        more = f"budget: {{epsilon: {TOTAL}, delta: 1.0e-6}}\n"
        cls.stream, cls.config = world.learn_in_phases(
            PROGRAMS, cls.folder, world.SUMS + world.USERS, more)
        # What the last file's records were predicted by, before it is learnt from.
        shutil.copytree(f"{cls.folder}/store", f"{cls.folder}/before")
        before = world.Daemon(PROGRAMS, cls.config, "--serve-only", "--checkpoint",
                              f"{cls.folder}/before")
        try:
            last = world.FILES - 1
            with open(cls.stream.file(last)) as lines:
                good = [line for line, record in zip(lines, cls.stream.records[last]) if record]
            cls.scores = before.post("/v1/score/lines?learner=sums", "".join(good))["scores"]
        finally:
            before.stop()
        cls.daemon = world.Daemon(PROGRAMS, cls.config)
        cls.daemon.until_all_is_learnt()
        # Users are counted at a start, and then every ten minutes.
        cls.want = None
        cls.browser = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        if cls.browser:
            cls.browser.close()
        if cls.daemon:
            cls.daemon.stop()
        shutil.rmtree(cls.folder, ignore_errors=True)

    def open(self, url, **more):
        page = self.browser.page(url, **more)
        self.addCleanup(page.close)
        page.wait("document.querySelectorAll('[data-n^=\"steps\"]').length > 0", "the budgets")
        return page

    def check_quiet(self, page, origin):
        """No error, and no request but to where the page came from."""
        self.assertEqual(page.events("Runtime.exceptionThrown"), [])
        self.assertEqual([e for e in page.events("Log.entryAdded")
                          if e["entry"]["level"] == "error"], [])
        urls = [e["request"]["url"] for e in page.events("Network.requestWillBeSent")]
        self.assertGreater(len(urls), 1)
        for url in urls:
            self.assertTrue(url.startswith((origin, "data:")), url)
        return urls

    def expected(self):
        # The store is the daemon's: a checkpoint of it is read.
        if DashboardTest.want is None:
            world.run(PROGRAMS, "tacit", "checkpoint", "create", "--url", self.daemon.url)
            parent = f"{self.folder}/store.checkpoints"
            place = f"{parent}/{sorted(os.listdir(parent))[-1]}"
            DashboardTest.want = oracle.expected(PROGRAMS, self.stream, place,
                                                 {"sums": 8, "users": 8}, TOTAL, world.FILES - 1)
            good = self.stream.good(world.FILES - 1)
            labels = [label for _, label, _ in good]
            entropy, calibration = oracle.entropy_and_calibration(self.scores, labels)
            privacy = self.daemon.json("/v1/privacy")
            DashboardTest.want |= {
                "ne sums": f"{entropy:.3f}", "calibration sums": f"{calibration:.3f}",
                "version": oracle.whole(privacy["version"]), "head": privacy["head"],
                "entries": "2", "lineage": privacy["lineage"]}
        # Counted at the start, before the last file: the users of the files before it.
        return {name: text for name, text in DashboardTest.want.items()
                if not name.startswith("users ")}

    def test_each_number_is_that_of_ledger_and_stream(self):
        want = self.expected()
        page = self.open(self.daemon.url + "/")
        page.wait("document.querySelectorAll('#raw section').length > 5", "the figures")
        got = page.eval(FIGURES)
        self.assertEqual({name: got.get(name) for name in want}, want)
        self.assertAlmostEqual(float(got["auc sums"]), oracle.auc(
            self.scores, [label for _, label, _ in self.stream.good(world.FILES - 1)]), delta=.001)
        low, high = map(float, got["auc range sums"].split(" to "))
        self.assertLess(low, float(got["auc sums"]))
        self.assertLess(float(got["auc sums"]), high)
        # The table behind the curve adds up to what was read, and to what could not be learnt from.
        page.wait("document.querySelector('[data-table=stream]') !== null", "two samples")
        page.eval("document.querySelector('[data-table=stream] summary').click()")
        page.wait("document.querySelector('[data-table=stream] tbody') !== null", "the table")
        rows = page.eval("""[...document.querySelectorAll('[data-table=stream] tbody tr')].map(
            row => [...row.children].map(cell => cell.textContent))""")
        add = lambda column: sum(int(row[column].replace(",", "")) for row in rows)
        self.assertEqual((add(1), add(2), add(3)), (world.LINES, sum(world.BAD.values()),
                                                    world.LINES - sum(world.BAD.values())))
        self.check_quiet(page, self.daemon.url)

    def test_the_curve_ends_at_what_is_spent(self):
        page = self.open(self.daemon.url + "/")
        page.wait("!!document.querySelector('[data-table=\"burn learner users\"]')", "the curve")
        page.eval("document.querySelector('[data-table=\"burn learner users\"] summary').click()")
        page.wait("!!document.querySelector('[data-table=\"burn learner users\"] tbody')", "its table")
        rows = page.eval("""[...document.querySelectorAll(
            '[data-table="burn learner users"] tbody tr')].map(
            row => [...row.children].map(cell => cell.textContent))""")
        want = self.expected()
        self.assertEqual(rows[-1][2], want["spent learner users"])
        # Each moment's epsilon is that of as many steps, each like the others.
        checkpoints = f"{self.folder}/store.checkpoints"
        mu, _ = oracle.ledger_of(
            PROGRAMS, f"{checkpoints}/{sorted(os.listdir(checkpoints))[-1]}")["users"]
        for _, steps, spent, left, _ in rows:
            taken = min(int(steps), world.ALLOWANCE)
            epsilon = oracle.epsilon_of(mu * taken / world.ALLOWANCE, 1e-6)
            self.assertAlmostEqual(float(spent), epsilon, delta=.0011)
            self.assertAlmostEqual(float(left), 8 - epsilon, delta=.0011)

    def test_planted_faults_are_seen(self):
        want = self.expected()
        proxy = Proxy(self.daemon)
        self.addCleanup(proxy.close)

        def seen(change):
            def answer(body):
                data = json.loads(body)
                change(data)
                return json.dumps(data).encode()
            proxy.change_answer = answer
            page = self.open(proxy.url)
            page.wait("document.querySelectorAll('#raw section').length > 5", "the figures")
            return differences(page, want)

        self.assertEqual(seen(lambda data: None), set())
        users = lambda data: next(l for l in data["learners"] if l["learner"] == "users")

        def less_spent(data):
            users(data)["epsilon"] -= .01
        self.assertEqual(seen(less_spent), {"spent learner users", "left learner users"})

        def total(data):
            data["total"]["epsilon"] += .01
        self.assertEqual(seen(total), {"spent total", "left total"})

        def stream(data):
            data["figures"]["records"]["read"] += 1
            data["figures"]["dead_letters"][0]["records"] += 1
        self.assertEqual({name.split()[0] for name in seen(stream)}, {"read", "dead"})

        def quality(data):
            for learner in data["figures"]["learners"]:
                for point in learner["quality"]:
                    point["loss_sum"] *= 1.01
        self.assertEqual(seen(quality), {"ne sums"})
        # A fault in the page itself.
        proxy.change_answer = None
        right = "Math.max(0, budget - spent)"
        proxy.change_page = lambda text: text.replace(right, "Math.max(0, spent)")
        page = self.open(proxy.url)
        page.wait("document.querySelectorAll('#raw section').length > 5", "the figures")
        self.assertLessEqual({"left learner users", "left total"}, differences(page, want))

    def test_next_items_stand_beside_their_baselines(self):
        proxy = Proxy(self.daemon)
        self.addCleanup(proxy.close)
        point = {"events": 900, "clicks": 0, "loss_sum": 0, "predicted": 0, "asked": 40, "hits": 12,
                 "popular_hits": 10, "successor_hits": 6, "gain": 7.5, "hit_low": .2008, "hit_high": .4798,
                 "first_ms": 100, "last_ms": 900}

        def answer(body):
            data = json.loads(body)
            learner = data["figures"]["learners"][0]
            learner |= {"recommends": True, "quality": [point, point | {"last_ms": 500}, point | {"hits": 13}]}
            return json.dumps(data).encode()
        proxy.change_answer = answer
        page = self.open(proxy.url)
        page.wait("!!document.querySelector('[data-n=\"hit sums\"]')", "the hits")
        got = page.eval(FIGURES)
        self.assertEqual((got["hit sums"], got["gain sums"]), ("0.325", "0.188"))
        self.assertEqual(got["hit range sums"], "0.201 to 0.480")
        plot = "document.querySelector('[data-plot=\"quality sums\"]')"
        text = page.eval(f"{plot}.textContent")
        for label in ("model 0.325", "popular 0.250", "successors 0.150"):
            self.assertIn(label, text)
        # Steps of one held period go over the same time: the curve goes on by the number of records.
        places = page.eval(f"{plot}.querySelector('path.ka').getAttribute('d').match(/[\\d.]+(?= )/g).map(Number)")
        self.assertEqual(places, sorted(places))
        self.assertEqual(len(places), 3)

    def test_names_are_texts(self):
        want = self.expected()
        proxy = Proxy(self.daemon)
        self.addCleanup(proxy.close)
        evil = "<img src=x onerror=alert(1)>\"'&<script>alert(2)</script>"

        def answer(body):
            text = body.decode()
            hostile = json.dumps(evil)[1:-1]
            for name, other in (("sums", hostile), ("users", "__proto__")):
                text = text.replace(f'"learner":"{name}"', f'"learner":"{other}"')
            data = json.loads(text)
            data["state"]["why"] = data["versions"]["lineage"] = data["versions"]["code"] = evil
            data["figures"]["source_alert"] = data["figures"]["dead_letters"][0]["part"] = evil
            return json.dumps(data).encode()
        proxy.change_answer = answer
        page = self.open(proxy.url)
        page.wait("document.querySelectorAll('#raw section').length > 5", "the figures")
        self.assertGreater(page.eval("document.body.innerText.split('onerror=alert(1)').length"), 8)
        self.assertEqual(page.eval("document.querySelectorAll('img, main script').length"), 0)
        self.assertEqual(page.eval("document.scripts.length"), 1)
        for name in ("spent learner", "allowance"):
            self.assertEqual(page.eval(f"""document.querySelector(
                '[data-n="{name} __proto__"]').textContent"""), want[f"{name} users"])
        self.check_quiet(page, proxy.url)

    def test_policy_and_size(self):
        status, body, headers = self.daemon.get("/", {"Accept": "text/html,*/*"})
        self.assertEqual(status, 200)
        self.assertLess(len(body), 100_000)
        policy = headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertNotIn(b"http://", body.replace(b"http://www.w3.org/", b""))
        # A script that is not the page's own does not run.
        proxy = Proxy(self.daemon)
        self.addCleanup(proxy.close)
        page = self.open(proxy.url)
        page.eval("""(() => { const s = document.createElement('script');
            s.textContent = 'window.strange = 1'; document.body.append(s); })()""")
        self.assertIsNone(page.eval("window.strange"))
        self.assertIsNone(page.eval("fetch('http://127.0.0.2:9/').then(() => 1, () => null)"))
        self.assertIn("connect-src", str(page.events("Log.entryAdded")))

    def test_a_keyboard_reaches_everything(self):
        page = self.open(self.daemon.url + "/")
        page.wait("!!document.querySelector('[data-table=stream]')", "two samples")
        place = """(e => e === document.body ? '' : e.id || e.name || e.dataset.table ||
            (e.tagName === 'SUMMARY' ? 'table ' + e.parentNode.dataset.table :
             e.getAttribute('aria-label') || e.className))(document.activeElement)"""
        wanted = set(page.eval(f"""[...document.querySelectorAll(
            'a[href], input, summary, [tabindex="0"]')].filter(e => !e.closest('[hidden]')).map(
            e => e.id || e.name ||
            (e.tagName === 'SUMMARY' ? 'table ' + e.parentNode.dataset.table :
             e.getAttribute('aria-label') || e.className))"""))
        reached, visible = [], True
        for _ in range(2 * len(wanted) + 10):
            page.tab()
            reached.append(page.eval(place))
            if reached[-1]:
                visible = visible and page.eval("""(e => [e, e.nextElementSibling].some(x => x &&
                    getComputedStyle(x).outlineStyle !== 'none' || e.className === 'skip'))(
                    document.activeElement)""")
        self.assertLessEqual(wanted, set(reached))
        self.assertTrue(visible)
        # Switches by keys: figures off, dark, and a table.
        page.eval("document.getElementById('figures').focus()")
        # The page asks by itself as well: each request is held against the switch as it was then.
        page.eval("""window.asked = [];
            const was = window.fetch, figures = document.getElementById('figures');
            window.fetch = (...a) => (asked.push([figures.checked, String(a[0])]), was(...a));""")
        before = len(page.events("Network.requestWillBeSent"))
        page.space()
        page.wait("document.querySelectorAll('.raw').length === 0", "figures are off")
        page.wait("document.getElementById('figures-state').textContent.startsWith('off')", "so")
        later = [e["request"]["url"] for e in page.events("Network.requestWillBeSent")[before:]]
        asked = page.eval("asked")
        self.assertFalse(asked[-1][0], asked)
        for shown, url in asked:
            self.assertIn("figures=all" if shown else "figures=public", url)
        # It asks in no other way.
        self.assertTrue(later)
        self.assertLessEqual(sum("figures=public" not in url for url in later),
                             sum(shown for shown, _ in asked))
        self.assertNotIn("not noised", page.eval("document.body.innerText"))
        page.screenshot(f"{OUTPUT}/figures-off.png")
        page.eval("document.querySelector('#theme input:checked').focus()")
        page.key("ArrowRight", number=39)
        page.key("ArrowRight", number=39)
        self.assertEqual(page.eval("document.documentElement.dataset.theme"), "dark")
        page.eval("document.querySelector('[data-table=said] summary').focus()")
        page.key("Enter", number=13, text="\r")
        page.wait("document.querySelector('[data-table=said] tbody') !== null", "a table by keys")
        self.assertIn("times of 100; a coin does 50", page.eval("document.body.innerText"))
        page.eval("localStorage.clear()")

    def test_pictures_in_light_and_dark_are_readable_and_named(self):
        for name, width, dark in (("light", 1280, False), ("dark", 1280, True),
                                  ("narrow", 390, False)):
            page = self.open(self.daemon.url + "/", width=width, dark=dark)
            page.wait("!!document.querySelector('[data-table=stream]')", "two samples")
            self.assertEqual(page.eval("document.documentElement.dataset.theme"),
                             "dark" if dark else "light")
            self.assertLessEqual(page.eval("document.documentElement.scrollWidth"), width)
            self.assertEqual(page.eval("""[...document.querySelectorAll('svg')].filter(
                s => s.getAttribute('role') !== 'img' || !s.getAttribute('aria-label')).length"""), 0)
            worst = page.eval("""(() => {
                const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(v => (v /= 255) <= .04045
                  ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
                const paper = light(getComputedStyle(document.body).backgroundColor);
                let worst = 99;
                for (const e of document.querySelectorAll('body *')) {
                  if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
                  if (['SCRIPT', 'STYLE', 'NOSCRIPT'].includes(e.tagName)) continue;
                  const s = getComputedStyle(e), ink = light(e.namespaceURI.endsWith('svg') ? s.fill : s.color);
                  worst = Math.min(worst, (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05));
                }
                return worst; })()""")
            self.assertGreaterEqual(worst, 4.5, name)
            page.screenshot(f"{OUTPUT}/{name}.png")
            if name == "light":
                paint = page.eval(
                    "performance.getEntriesByName('first-contentful-paint')[0].startTime")
                print(f"first paint after {paint:.0f} ms", file=sys.stderr)
                with open(f"{OUTPUT}/first_paint.json", "w") as file:
                    json.dump({"first_contentful_paint_ms": paint}, file)

    def test_the_picture_of_the_first_page_is_made(self):
        picture = pathlib.Path(OUTPUT) / "readme.png"
        tool = pathlib.Path(__file__).parents[3] / "tools/docs"
        made = world.run(tool.parent, tool.name, "--picture", str(picture), "--programs", PROGRAMS, "--rows", "2000")
        self.assertIn("Privacy budget, Users’ allowances, Stream", made)
        head = picture.read_bytes()[:24]
        self.assertEqual(head[1:4], b"PNG")
        width, height = struct.unpack(">II", head[16:])
        self.assertEqual(width, 1500)
        self.assertGreater(height, 1500)

    def test_a_refresh_leaves_the_page_alone(self):
        page = self.open(self.daemon.url + "/")
        page.wait("!!document.querySelector('[data-table=stream]')", "two samples")
        page.wait("document.querySelectorAll('.plot svg').length > 3", "plots")
        # The nodes there are stay, and none is added or removed by an answer that says the same.
        page.eval("""window.changes = 0; window.seen = 0;
            new MutationObserver(list => changes += list.filter(m => m.type === 'childList').length)
              .observe(document.querySelector('#budget'), {childList: true, subtree: true});
            const was = window.fetch;
            window.fetch = (...a) => was(...a).then(r => (++seen, r));""")
        page.wait("seen >= 2", "two refreshes")
        self.assertEqual(page.eval("changes"), 0)

    def test_a_daemon_that_is_gone_leaves_figures_with_their_age(self):
        config = world.write_config(f"{self.folder}/short.yaml", [self.stream.file(0)],
                                    f"{self.folder}/short", world.SUMS)
        daemon = world.Daemon(PROGRAMS, config)
        self.addCleanup(daemon.stop)
        daemon.until_all_is_learnt()
        page = self.open(daemon.url + "/")
        spent = page.eval(FIGURES)["spent learner sums"]
        self.assertEqual(page.eval("document.getElementById('alarm').innerText"), "")
        daemon.stop()
        page.wait("/does not answer.*are of .* old/.test(document.getElementById('alarm').innerText)",
                  "the alarm")
        self.assertTrue(page.eval("document.body.classList.contains('stale')"))
        self.assertIn("no answer", page.eval("document.getElementById('status').innerText"))
        self.assertEqual(page.eval(FIGURES)["spent learner sums"], spent)
        page.screenshot(f"{OUTPUT}/gone.png")

    def test_nothing_learnt_yet(self):
        path = f"{self.folder}/empty.jsonl"
        open(path, "w").close()
        config = world.write_config(f"{self.folder}/none.yaml", [path], f"{self.folder}/none",
                                    world.SUMS)
        daemon = world.Daemon(PROGRAMS, config)
        self.addCleanup(daemon.stop)
        daemon.until_all_is_learnt()
        page = self.open(daemon.url + "/")
        page.wait("document.querySelectorAll('#raw section').length > 5", "the figures")
        text = page.eval("document.body.innerText")
        for why in ("Nothing has been learnt yet", "No step was taken", "No prediction yet", "No record was read yet",
                    "nothing is committed yet", "no checkpoint yet"):
            self.assertIn(why, text)
        got = page.eval(FIGURES)
        self.assertEqual((got["left learner sums"], got["read"]), ("8.000", "0"))
        self.check_quiet(page, daemon.url)

    def test_a_served_checkpoint_has_no_figures_to_show(self):
        daemon = world.Daemon(PROGRAMS, self.config, "--serve-only", "--checkpoint",
                              f"{self.folder}/before")
        self.addCleanup(daemon.stop)
        page = self.open(daemon.url + "/")
        page.wait("document.body.innerText.includes('Nothing is learnt here')", "the reason")
        self.assertEqual(page.eval("document.querySelectorAll('.raw').length"), 0)
        self.assertEqual(page.eval(FIGURES)["activity"], "serving a checkpoint")
        self.check_quiet(page, daemon.url)

    def test_an_operators_token_is_asked_for_where_callers_are_known(self):
        token = "t" * 43
        callers = f"{self.folder}/callers"
        with open(callers, "w") as file:
            file.write(f"operator ops sha256:{hashlib.sha256(token.encode()).hexdigest()}\n")
        os.chmod(callers, 0o600)
        daemon = world.Daemon(PROGRAMS, self.config, "--serve-only", "--checkpoint",
                              f"{self.folder}/before", "--set", f"serve.callers={callers}")
        self.addCleanup(daemon.stop)
        page = self.browser.page(daemon.url + "/")  # it shows no budget yet
        self.addCleanup(page.close)
        page.wait("!document.getElementById('token').hidden", "the field for a token")
        self.assertIn("answers operators alone", page.eval("document.body.innerText"))
        self.assertEqual(page.eval("Object.keys(%s).length" % FIGURES.strip().rstrip(";")), 0)
        for text in ("wrong", token):
            page.eval("document.getElementById('token-text').focus()")
            page.call("Input.insertText", text=text)
            page.key("Enter", number=13, text="\r")
        page.wait("document.body.innerText.includes('Nothing is learnt here')", "the reason")
        self.assertTrue(page.eval("document.getElementById('token').hidden"))
        self.assertNotIn(token, page.eval("document.documentElement.outerHTML"))

    def test_forecasts_are_those_of_the_closed_form(self):
        # Two files are learnt: a budget just below what all allowances come to is crossed soon, one
        # above never, and one below what is spent already is.
        mu = oracle.ledger_of(PROGRAMS, f"{self.folder}/before")
        each = mu["users"][0] / mu["users"][1]
        most = oracle.epsilon_of(mu["sums"][0] + each * world.ALLOWANCE, 1e-6)
        spent = oracle.epsilon_of(mu["sums"][0] + mu["users"][0], 1e-6)
        for budget, words in ((most - .05, "runs out "), (most + .05, "does not run out"),
                              (spent + .01, "has run out"), (most - .1, "runs out ")):
            daemon = world.Daemon(PROGRAMS, self.config, "--serve-only", "--checkpoint",
                                  f"{self.folder}/before", "--set", f"budget.epsilon={budget:.4f}")
            try:
                page = self.open(daemon.url + "/")
                page.wait("!!document.querySelector('[data-plot=\"burn total\"]')", "the curve")
                got = page.eval(FIGURES)
                self.assertEqual(got["spent total"], f"{spent:.3f}")
                self.assertTrue(got["forecast total"].startswith(words), (budget, got))
                self.assertEqual(got["forecast learner users"],
                                 "does not run out: a user comes to 8.000 at most")
                if words == "does not run out":
                    self.assertIn(f"comes to {most:.3f} at most", got["forecast total"])
            finally:
                daemon.stop()

    def test_twenty_learners(self):
        learners = "".join(world.SUMS.replace("id: sums", f"id: sums-{i:02}").replace(
            "epsilon: 8", f"epsilon: {1 + i % 5}") for i in range(20))
        config = world.write_config(f"{self.folder}/many.yaml", [self.stream.file(0)],
                                    f"{self.folder}/many", learners)
        daemon = world.Daemon(PROGRAMS, config)
        self.addCleanup(daemon.stop)
        daemon.until_all_is_learnt()
        page = self.open(daemon.url + "/")
        page.wait("document.querySelectorAll('[data-plot^=\"burn learner\"] svg').length === 20",
                  "a curve each")
        got = page.eval(FIGURES)
        self.assertEqual([got[f"spent learner sums-{i:02}"] for i in range(20)],
                         [f"{1 + i % 5}.000" for i in range(20)])
        page.screenshot(f"{OUTPUT}/many.png")
        self.check_quiet(page, daemon.url)

    def test_zz_users_are_counted_by_what_is_left(self):
        # A daemon that begins on the finished store counts all of them.
        self.expected()
        self.daemon.stop()
        DashboardTest.daemon = world.Daemon(PROGRAMS, self.config)
        page = self.open(self.daemon.url + "/")
        page.wait("!!document.querySelector('[data-n=\"users users\"]')", "the count")
        got = page.eval(FIGURES)
        want = {n: t for n, t in DashboardTest.want.items() if n.startswith("users ")}
        self.assertEqual({n: got.get(n) for n in want}, want)


if __name__ == "__main__":
    if browser.find_chromium() is None:
        sys.exit("chromium is not installed: tools/setup tools/test-packages.txt brings it")
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])

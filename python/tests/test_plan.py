"""Plans as values: dry runs, ten lines, and a page.

Under test: `wh.explain` and `program.plan`. Numbers are judged by what must
hold of each plan: a dry run decides what the compilation decides, what devices
spend their time with adds up to the step, and the page is well-formed HTML with
a part for each device. A failure means that what users read of a plan isn't the
plan. Nothing is run.
"""

import html.parser
import json
import os
import pathlib
import shutil
import subprocess

import jax
import jax.numpy as jnp
import pytest

import whale as wh

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLUSTER = {
    "nodes": [
        {"name": "a", "devices": [{"kind": "V100-SXM2-32GB", "count": 2}]},
        {"name": "b", "devices": [{"kind": "P100-PCIe-16GB", "count": 2}]},
    ],
    "network": {"bandwidth": 6.25e9, "latency": 1e-5},
}


def train_step(params, x):
    def loss(params):
        y = x
        for name, stage in params.items():
            with wh.replicate(2, name=name):
                for weight in stage:
                    y = jnp.tanh(y @ weight)
        return jnp.mean(y**2)

    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - g, params, grads), value


PARAMS = {"front": [jnp.zeros((64, 64))] * 2, "back": [jnp.zeros((64, 64))]}
BATCH = jax.ShapeDtypeStruct((32, 64), jnp.float32)


@pytest.fixture
def step():
    wh.init(wh.Config({"num_micro_batch": 4}))
    return wh.jit(
        train_step, cluster=CLUSTER, donate_argnums=0, batch_argnums=1
    )


class Elements(html.parser.HTMLParser):
    """Whether tags are closed in turn, and what is in the page."""

    EMPTY = ("meta", "br", "input")

    def __init__(self, page):
        super().__init__()
        self.open, self.ids, self.tags = [], [], []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_dry_run(step):
    plan = wh.explain(step, PARAMS, BATCH)
    assert isinstance(plan, wh.Plan) and isinstance(plan, dict)
    assert plan["samples"] == 32 and plan["micro_batches"] == 4
    for devices in plan["devices"]:
        spent = [devices[f"{k}_s"] for k in ("compute", "communication")]
        spent.append(devices["idle_s"])
        assert min(spent) >= 0 and spent[0] > 0
        assert sum(spent) == pytest.approx(plan["step_time_s"])
        assert sum(devices["memory"].values()) == devices["peak_memory_bytes"]
        assert devices["computed"][0][0] == 0
        assert devices["computed"][-1][1] <= plan["timeline_end"]
        moments = {piece[3] for piece in devices["computed"] if piece[3:]}
        assert moments == set(range(4))
    assert [d["ranks"] for d in plan["devices"]] == [[0, 1], [2, 3]]
    shares = [g["shares"] for g in plan["task_graphs"] if "shares" in g]
    assert shares == [[0.5], [0.5]]
    assert [link["name"] for link in plan["links"]] == ["network", "a", "b"]
    # Another cluster in place of the step's own, and a plain function.
    other = wh.explain(step, PARAMS, BATCH, cluster=4)
    assert {d["kind"] for d in other["devices"]} == {"cpu"}
    with pytest.raises(ValueError, match="no cluster to compile for"):
        wh.explain(train_step, PARAMS, BATCH)
    wh.init(wh.Config())
    assert wh.explain(train_step, PARAMS, BATCH, cluster=CLUSTER)["devices"]


def test_summary_and_page(step, tmp_path, capfd):
    program = step.lower(PARAMS, BATCH).compile(explain=True)
    said = capfd.readouterr().err
    plan = program.plan
    assert str(plan) == plan.summary() == said
    lines = said.splitlines()
    assert len(lines) == 9
    assert [line.partition("  ")[0] for line in lines if line[0] != " "] == [
        "step",
        "devices",
        "fits",
        "work",
        "time",
        "exchanges",
        "slowest link",
        "limit",
    ]
    assert "for 32 samples" in lines[0]
    assert "devices 0-1 are V100-SXM2-32GB" in lines[1]
    # A dry run decides the same.
    assert plan == wh.explain(step, PARAMS, BATCH)
    page = plan.to_html(tmp_path / "plan.html")
    assert (tmp_path / "plan.html").read_text() == page == plan._repr_html_()
    elements = Elements(page)
    assert elements.ids == [
        "summary",
        "devices",
        "memory",
        "schedule",
        "arguments",
    ]
    assert "script" not in elements.tags and "link" not in elements.tags
    # A plan is data: it survives JSON, and edits show.
    again = wh.Plan(json.loads(json.dumps(plan)))
    assert again == plan and again.to_html() == page
    again["devices"][0]["kind"] = "<another>"
    assert "&lt;another&gt;" in again.to_html()
    assert "front" in repr(plan) and "4 devices" in repr(plan)


def test_explain_is_one_of_few(step):
    with pytest.raises(ValueError, match="explain must be True, or one of"):
        step.lower(PARAMS, BATCH).compile(explain="loudly")


def test_names_of_any_bytes():
    name = b"\xff<".decode(errors="surrogateescape")
    plan = wh.Plan({"task_graphs": [{"name": name, "phase": "apply"}]})
    assert r"work  of the FLOPs \xFF< 0.0 %" in plan.summary()
    assert wh.Plan().summary() == "the plan says nothing\n"


def lay_out(page: str, folder: pathlib.Path) -> list[tuple[str, float]]:
    """What a browser makes of sections, boxes and curves: names and widths."""
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("there is no chromium")
    # What the browser has laid out, as text that it prints.
    page += """<script>
    const sizes = [...document.querySelectorAll(
      "section, rect, path, td.share, .scroll svg")].map(
      e => [e.id || e.tagName, e.getBoundingClientRect().width]);
    document.body.innerHTML = "<pre>" + JSON.stringify(sizes) + "</pre>";
    </script>"""
    (folder / "page.html").write_text(page)
    drawn = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={folder / 'profile'}",
            "--dump-dom",
            f"file://{folder / 'page.html'}",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    return json.loads(drawn.partition("<pre>")[2].partition("</pre>")[0])


in_a_browser = pytest.mark.skipif(
    not os.environ.get("WHALE_TEST_FULL"), reason="a browser takes long"
)


@in_a_browser
def test_page_in_a_browser(step, tmp_path):
    """The page is drawn as it is written: boxes in the browser's layout."""
    sizes = lay_out(wh.explain(step, PARAMS, BATCH).to_html(), tmp_path)
    names = [name for name, _ in sizes]
    assert names.count("TD") == 2 and names.count("rect") > 8
    assert all(width > 0 for _, width in sizes)


@in_a_browser
def test_a_simulated_step_in_a_browser(step, tmp_path):
    """Memory over time is a curve, and the schedule can be enlarged."""
    program = tmp_path / "step.whale"
    step.lower(PARAMS, BATCH).compile().save(program)
    page = tmp_path / "sim.html"
    subprocess.run(
        [ROOT / "build" / "bin" / "whale-sim", program, f"--html={page}"],
        capture_output=True,
        check=True,
    )
    text = page.read_text()
    sizes = lay_out(text, tmp_path)
    names = [name for name, _ in sizes]
    assert names.count("path") >= 1 and "memory-over-time" in names
    assert all(width > 0 for _, width in sizes)
    enlarged = text.replace('class="z4"', 'class="z4" checked')
    schedule = dict(lay_out(enlarged, tmp_path))["svg"]
    assert schedule == pytest.approx(4 * dict(sizes)["svg"], rel=0.02)

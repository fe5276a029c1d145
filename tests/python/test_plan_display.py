# SPDX-License-Identifier: Apache-2.0
"""What a plan and a fit print and show in a notebook."""

import re
import xml.etree.ElementTree

import planned_training as tools  # noqa: F401 - sets torch up
import pytest
import torch

import stowage
from stowage._sizes import format_duration, format_size

SVG = "{http://www.w3.org/2000/svg}"


def step_of(model, optimizer, budget="60%peak", **options):
    @stowage.step(model, optimizer, budget=budget, device="cpu", **options)
    def train_step(x):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return train_step


def planned(depth=6, **options):
    torch.manual_seed(0)
    layers = [layer for _ in range(depth) for layer in (torch.nn.Linear(32, 32), torch.nn.GELU())]
    model = torch.nn.Sequential(*layers)
    return step_of(model, torch.optim.AdamW(model.parameters()), **options)


class Asks(torch.nn.Module):
    """Asks its input something in several lines."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)

    def forward(self, x):
        if (x < 9).all() and (x > -9).all():
            x = x + 1
        if (x < -9).any():
            x = x - 1
        if (x > 99).any():
            x = x + 2
        if (x < 99).all():
            x = self.inner(x)
        return x


def texts(page):
    """Of all elements, in order."""
    return [text.strip() for text in page.itertext() if text.strip()]


def test_a_notebook_shows_the_plans_own_numbers():
    train_step = planned()
    plan = train_step.plan(torch.randn(256, 32))
    smallest = plan.smallest_budget
    page = xml.etree.ElementTree.fromstring(plan._repr_html_())
    rows = {row[0].text: row[1].text for row in page.iter("tr")}
    facts = plan.to_dict()
    assert rows["budget"] == format_size(plan.budget)
    assert rows["peak"] == format_size(plan.peak)
    assert rows["unplanned"].startswith(format_size(plan.unplanned))
    assert rows["smallest"].startswith(format_size(smallest))
    assert rows["step"].startswith(format_duration(plan.step_ns))
    assert rows["bound"].startswith(format_duration(facts["predicted"]["bound_ns"]))
    assert rows["offloads"].startswith(format_size(facts["predicted"]["out_bytes"]))
    assert rows["resident"].startswith(format_size(facts["resident_bytes"]))
    picture = page.find(SVG + "svg")
    words = texts(picture)
    assert f"budget {format_size(plan.budget)}" in words
    kinds = {"parameters", "optimizer state", "gradients", "activations", "temporaries"}
    assert kinds <= set(words)
    shown = [one for one in words if one.startswith("planned: peak ")]
    assert len(shown) == 1 and shown[0].endswith(", step " + format_duration(plan.step_ns)), shown
    assert len(list(picture.iter(SVG + "path"))) >= 6


def test_a_page_of_a_notebook_needs_nothing_else():
    text = planned().plan(torch.randn(64, 32))._repr_html_()
    addresses = re.findall(r"https?://[^\"' ]*", text)
    assert set(addresses) == {"http://www.w3.org/2000/svg"}  # the name of SVG, not a place
    assert not re.search(r"<script|<link|<style|\bon\w+=|url\(", text)
    # Words of the table have the notebook's colour; those of the picture are black on white.
    assert "color:" not in text
    assert '<rect width="900" height="380" fill="white"/>' in text


def test_names_are_escaped():
    plan = planned().plan(torch.randn(64, 32))
    plan.captured.bypassed.add("<b>&\x1b</b>")
    plan.captured.assumptions["<i>.py:1, in \"f\""] = [1.0]
    page = xml.etree.ElementTree.fromstring(plan._repr_html_())
    rows = {row[0].text: row[1].text for row in page.iter("tr")}
    assert rows["bypassed"] == "<b>&?</b>"
    assert rows["assumes"] == '1 at <i>.py:1, in "f"'


def test_the_smallest_budget_works_and_less_does_not():
    train_step = planned()
    x = torch.randn(256, 32)
    plan = train_step.plan(x)
    smallest = plan.smallest_budget
    assert f"smallest   {format_size(smallest)}" in str(plan)
    assert train_step.plan(x, budget=smallest).peak <= smallest
    with pytest.raises(stowage.Infeasible) as raised:
        train_step.plan(x, budget=smallest - 64)
    assert raised.value.smallest_budget == smallest


def test_printing_a_plan_does_not_take_long(monkeypatch):
    monkeypatch.setattr("stowage._plan._QUICK", 0.0)
    train_step = planned()
    plan = train_step.plan(torch.randn(64, 32))
    hint = "smallest   plan.smallest_budget finds the smallest budget that works"
    assert hint in str(plan) and "plan.smallest_budget finds" in plan._repr_html_()
    assert f"smallest   {format_size(plan.smallest_budget)}" in str(plan)
    assert hint not in str(plan)


def test_a_plan_shows_itself_while_it_runs_and_afterwards():
    x = torch.randn(64, 32)
    train_step = planned()
    train_step(x)
    plan = train_step._runner.plan
    assert 0 < plan.smallest_budget < plan.budget
    train_step(x)
    train_step.leave()
    assert "fits " in str(plan) and "<svg" in plan._repr_html_()
    other = planned()
    plan = other.plan(x)
    other.leave()
    assert "smallest" not in str(plan) and "smallest" not in plan._repr_html_()
    with pytest.raises(stowage.InvalidArgument, match="not captured"):
        print(plan.smallest_budget)


def test_a_plan_lists_what_it_assumes():
    model = Asks()
    train_step = step_of(model, torch.optim.SGD(model.parameters(), lr=0.1), budget="100%peak")
    plan = train_step.plan(torch.randn(4, 8))
    lines = [line for line in str(plan).splitlines() if line.startswith("assumes ")]
    places = list(plan.assumptions)
    assert len(places) == 4 and all("test_plan_display.py:" in one for one in places)
    assert lines[:3] == [
        f"assumes    1, 1 at {places[0]}", f"assumes    0 at {places[1]}",
        f"assumes    0 at {places[2]}"]
    plan.assumptions.clear()  # a copy
    assert len(plan.assumptions) == len(places)
    for number in range(5):
        plan.captured.assumptions[f"z{number}.py:1, in f"] = [0.0]
    assert str(plan).splitlines()[-1] == "assumes    6 more: plan.assumptions"


def test_a_model_that_asks_nothing_assumes_nothing():
    plan = planned().plan(torch.randn(64, 32))
    assert plan.assumptions == {}
    assert "assumes" not in str(plan) and "assumes" not in plan._repr_html_()


def test_a_fit_is_a_table_and_says_what_more_would_bring():
    train_step = planned(depth=1, budget=24_000)
    found = stowage.fit(train_step, torch.randn(2, 32))
    page = xml.etree.ElementTree.fromstring(found._repr_html_())
    rows = [[cell.text or "" for cell in row] for row in page.iter("tr")]
    assert rows[0] == ["budget", "batch", "peak", "step", "per token"]
    assert len(rows) == 1 + len(found.rows) + 2
    assert all(cell in str(found) for row in rows for cell in row)
    assert [row["budget_bytes"] for row in found.larger] == [30_000, 36_000]
    sizes = [found.largest, *(row["size"] for row in found.larger)]
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]
    for row in found.larger:
        assert row["peak_bytes"] <= row["budget_bytes"]
        train_step.plan(torch.randn(row["size"], 32), budget=row["budget_bytes"])
        train_step.leave()
        with pytest.raises(stowage.Infeasible):
            train_step.plan(torch.randn(row["size"] + 1, 32), budget=row["budget_bytes"])
        train_step.leave()

# SPDX-License-Identifier: Apache-2.0
"""The benchmark's figures as text."""
import statistics

HEAD = ("workload", "contender", "min", "median", "fastest peer / this, min", "fastest peer / this, median", "of the limit, best",
        "of the limit, median", "of sgemm, best", "peak above start MiB", "peak MiB", "gradient error")


def markdown(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def time_text(seconds):
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.3f} s"


def mib(size):
    return f"{size / 2**20:.0f}"


def median(figure):
    """Of the rounds' medians."""
    return statistics.median(figure["medians"])


def share(flops_per_second, rate):
    """Needed operations a second of one of the machine's highest rates."""
    if rate is None:
        return "-"
    part = flops_per_second / rate
    return f"{100 * part:.0f} %" if part >= 0.005 else "< 1 %"


def row(workload, name, figure, peers, machine, errors):
    def ratio(value):
        return f"{min(map(value, peers)) / value(figure):.2f}" if peers else "-"

    error = errors.get(name)
    return (
        workload,
        f"**{name}**" if figure["ours"] else name,
        time_text(figure["min"]),
        time_text(median(figure)),
        ratio(lambda one: one["min"]),
        ratio(median),
        share(max(figure["flops_per_second"]), machine.limit()),
        share(statistics.median(figure["flops_per_second"]), machine.limit()),
        share(max(figure["flops_per_second"]), machine.sgemm()),
        mib(figure["peak_above_bytes"]),
        mib(figure["peak_bytes"]),
        "-" if error is None else f"{error:.1e}",
    )


def updates(results, machine, gradients):
    """One row a contender; results: workload: contender: figure."""
    rows = []
    for workload, figures in results.items():
        peers = [figure for figure in figures.values() if not figure["ours"]]
        for name, figure in figures.items():
            rows.append(row(workload, name, figure, peers, machine, gradients.get(workload, {})))
    return markdown(HEAD, rows)


def groups(results):
    """A line for each contender that was free to cut an update's batch."""
    for workload, figures in results.items():
        for name, figure in figures.items():
            if figure["options"]:
                counts = f"{min(figure['groups'])} to {max(figure['groups'])}"
                yield f"{workload}, {name} ({', '.join(figure['options'])}): {counts} micro-batches an update"


def sizes(figures, rate):
    """Of workload R: the batch grows, the micro-batch stays; compared with one whole micro-batch, K = 1.

    A round's figure is the median of its updates. Neighbours of this machine come and go between rounds: the fastest round
    of each batch is what they disturb least.
    """
    first = next(figure for figure in figures if figure["batch"] == max(one["micro_batch"] for one in figures))
    times = ("seconds_per_sample", "least_seconds_per_sample", "micro_seconds_per_sample", "least_micro_seconds_per_sample")
    rows = [
        (
            str(figure["batch"]),
            f"{figure['micro_batch']} x {figure['batch'] // figure['micro_batch']}",
            *(f"{time_text(figure[time])} ({figure[time] / first[time]:.2f})" for time in times),
            "-" if rate is None else f"{100 * figure['flops_per_sample'] / figure['least_seconds_per_sample'] / rate:.0f} %",
            f"{mib(figure['peak_bytes'])} ({figure['peak_bytes'] / first['peak_bytes']:.3f})",
        )
        for figure in figures
    ]
    head = ("R: batch", "micro-batches", "a sample (to K = 1): median round", "fastest round")
    head += ("forward and backward alone: median round", "fastest round", "of the limit, fastest", "peak MiB (to K = 1)")
    return markdown(head, rows)

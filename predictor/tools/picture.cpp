/* SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "prediction_report.h"

namespace zc::report {

namespace {

constexpr double kWidth = 980;
constexpr double kLeft = 70;
constexpr double kPlotWidth = 660;
constexpr double kPlotHeight = 260;
constexpr double kRowHeight = 16;

/* Distinguishable in grey and by people who see fewer colours (Okabe and Ito, and wine). */
constexpr std::array<const char *, 10> kColours = {"#000000", "#d55e00", "#0072b2", "#009e73",
                                                   "#cc79a7", "#e69f00", "#56b4e9", "#8c8c8c",
                                                   "#882255", "#117733"};
/* Lines that lie on each other remain visible. */
constexpr std::array<const char *, 3> kDashes = {"none", "8 3", "3 3"};

const char *colour(size_t i)
{
    return kColours[i % kColours.size()];
}

const char *dashes(size_t i)
{
    return i == 0 ? kDashes[0] : kDashes[i % kDashes.size()];
}

std::string escaped(const std::string &text)
{
    std::string out;
    for (const char c : text) {
        switch (c) {
        case '&':
            out += "&amp;";
            break;
        case '<':
            out += "&lt;";
            break;
        case '>':
            out += "&gt;";
            break;
        default:
            out += c;
        }
    }
    return out;
}

std::string text(double x, double y, const std::string &words, const char *anchor = "start")
{
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y,
                       anchor, escaped(words));
}

/** Mean over all traces of the share foretold h ahead, over 8 KiB; negative: nothing. */
double mean_ahead(const std::vector<subject> &subjects, size_t predictor, bool posted, uint32_t h)
{
    double sum = 0;
    int n = 0;
    for (const subject &subject : subjects) {
        const measurement &m = subject.measurements[predictor];
        const share &share = (posted ? m.post : m.arrival).ahead[over_8k][h - 1];
        if (!m.has_stream || share.n == 0)
            continue;
        sum += share.percent();
        n++;
    }
    return n ? sum / n : -1;
}

std::string axes(double top, const std::string &title)
{
    std::string out = text(kLeft, top - 12, title);
    for (int percent = 0; percent <= 100; percent += 20) {
        const double y = top + kPlotHeight * (1 - percent / 100.0);
        out += fmt::format("<path d=\"M{:.1f} {:.1f}h{:.1f}\" stroke=\"#ddd\"/>\n", kLeft, y,
                           kPlotWidth);
        out += text(kLeft - 8, y + 4, fmt::format("{} %", percent), "end");
    }
    for (uint32_t h = 1; h <= kHorizons; h++)
        out += text(kLeft + kPlotWidth * (h - 1) / (kHorizons - 1), top + kPlotHeight + 18,
                    fmt::format("+{}", h), "middle");
    return out;
}

std::string lines(const std::vector<subject> &subjects, bool posted, double top)
{
    std::string out = axes(top, fmt::format("Receives over 8 KiB foretold, {} order, mean",
                                            posted ? "posting" : "arrival"));
    const auto &measurements = subjects.front().measurements;
    double legend = top + 6;
    for (size_t p = 0; p < measurements.size(); p++) {
        std::string path;
        for (uint32_t h = 1; h <= kHorizons; h++) {
            const double percent = mean_ahead(subjects, p, posted, h);
            if (percent >= 0)
                path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? 'M' : 'L',
                                    kLeft + kPlotWidth * (h - 1) / (kHorizons - 1),
                                    top + kPlotHeight * (1 - percent / 100));
        }
        if (path.empty())
            continue;
        out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" "
                           "stroke-dasharray=\"{}\"/>\n",
                           path, colour(p), p == 0 ? 3 : 2, dashes(p));
        out += fmt::format("<path d=\"M{:.1f} {:.1f}h22\" stroke=\"{}\" stroke-width=\"3\" "
                           "stroke-dasharray=\"{}\"/>\n",
                           kLeft + kPlotWidth + 22, legend - 4, colour(p), dashes(p));
        out += text(kLeft + kPlotWidth + 50, legend, measurements[p].predictor);
        legend += kRowHeight;
    }
    return out;
}

/** One line per run, one dot per predictor. */
std::string landing(const std::vector<subject> &subjects, double top)
{
    std::set<std::string> runs;
    for (const subject &subject : subjects)
        runs.insert(subject.run);
    const double left = kLeft + 100;
    const double width = kPlotWidth - 100;
    std::string out = text(
        kLeft, top - 12,
        "Messages over 8 KiB sent before their receive was posted: landed at the exact address");
    const double bottom = top + kRowHeight * static_cast<double>(runs.size() + 1);
    for (int percent = 0; percent <= 100; percent += 20) {
        const double x = left + width * percent / 100.0;
        out += fmt::format("<path d=\"M{:.1f} {:.1f}V{:.1f}\" stroke=\"#ddd\"/>\n", x, top, bottom);
        out += text(x, bottom + 16, fmt::format("{} %", percent), "middle");
    }
    double legend = top + 6;
    for (size_t p = 0; p < subjects.front().measurements.size(); p++) {
        const measurement &m = subjects.front().measurements[p];
        if (!m.has_landing)
            continue;
        out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>\n",
                           kLeft + kPlotWidth + 33, legend - 4, p == 0 ? 5 : 4, colour(p));
        out += text(kLeft + kPlotWidth + 50, legend, m.predictor);
        legend += kRowHeight;
    }
    double y = top;
    for (const std::string &run : runs) {
        y += kRowHeight;
        out += text(left - 10, y + 4, run, "end");
        out += fmt::format("<path d=\"M{:.1f} {:.1f}h{:.1f}\" stroke=\"#ddd\"/>\n", left, y, width);
        const auto &measurements = subjects.front().measurements;
        for (size_t p = measurements.size(); p-- > 0;) {
            for (const auto &value :
                 values_by_run(subjects, measurements[p].predictor, figure::exact, over_8k)) {
                if (value.run == run)
                    out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\">"
                                       "<title>{} {:.1f} %</title></circle>\n",
                                       left + width * value.percent / 100, y, p == 0 ? 5 : 4,
                                       colour(p), measurements[p].predictor, value.percent);
            }
        }
    }
    return out;
}

} // namespace

std::string to_svg(const std::vector<subject> &subjects)
{
    std::set<std::string> runs;
    for (const subject &subject : subjects)
        runs.insert(subject.run);
    const double second = 40 + kPlotHeight + 70;
    const double third = second + kPlotHeight + 70;
    const double rows = std::max(static_cast<double>(runs.size()), 8.0);
    const double height = third + kRowHeight * (rows + 1) + 30;
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1:.0f}\" width=\"{0}\" "
        "height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        kWidth, height);
    out += lines(subjects, true, 40);
    out += lines(subjects, false, second);
    out += landing(subjects, third);
    return out + "</svg>\n";
}

} // namespace zc::report

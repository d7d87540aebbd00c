/* SPDX-License-Identifier: BSD-3-Clause */
#include "plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <stdexcept>

#include "markup.h"

namespace {

constexpr double kWidth = 300; /* of a panel's diagram */
constexpr double kHeight = 220;
constexpr double kLeft = 56;
constexpr double kTop = 62;
constexpr double kBelow = 52;
constexpr double kLegendRow = 16;

/* Distinguishable without colour vision too (Okabe and Ito). */
constexpr std::array<const char *, 8> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                  "#e69f00", "#56b4e9", "#000000", "#999999"};

/** Whether a linear axis has few enough whole numbers to name each. */
bool countable(double first, double last)
{
    return std::floor(first) == first && std::floor(last) == last && last - first <= 10;
}

/** Maps values of one panel to places. */
class scale {
  public:
    scale(const plot &p, double left, double top) : plot_(p), left_(left), top_(top)
    {
        first_ = 1e300;
        last_ = -1e300;
        for (const auto &[caption, curves] : p.panels) {
            for (const curve &c : curves) {
                for (const auto &[x, y] : c.points) {
                    first_ = std::min(first_, along(x));
                    last_ = std::max(last_, along(x));
                }
            }
        }
        if (!(last_ > first_))
            last_ = first_ + 1;
    }

    double x(double value) const
    {
        return left_ + (along(value) - first_) / (last_ - first_) * kWidth;
    }
    double y(double value) const
    {
        return top_ + kHeight * (1 - std::min(value, plot_.y_most) / plot_.y_most);
    }
    std::vector<double> ticks() const
    {
        std::vector<double> out;
        if (plot_.x_powers) {
            const double step = std::max(1.0, std::ceil((last_ - first_) / 6));
            for (double power = std::ceil(first_); power <= last_; power += step)
                out.push_back(std::exp2(power));
        } else if (countable(first_, last_)) {
            for (double value = first_; value <= last_; value++)
                out.push_back(value);
        } else {
            for (int i = 0; i <= 5; i++)
                out.push_back(first_ + (last_ - first_) * i / 5);
        }
        return out;
    }

  private:
    double along(double value) const { return plot_.x_powers ? std::log2(value) : value; }

    const plot &plot_;
    double left_;
    double top_;
    double first_;
    double last_;
};

void draw_axes(std::ofstream &out, const plot &p, const scale &to, double left, double top,
               const std::string &caption)
{
    out << fmt::format("<rect x='{}' y='{}' width='{}' height='{}' fill='none' "
                       "stroke='#444'/>\n",
                       left, top, kWidth, kHeight);
    for (int i = 0; i <= 4; i++) {
        const double value = p.y_most * i / 4;
        out << fmt::format("<line x1='{0}' x2='{1}' y1='{2}' y2='{2}' stroke='#ddd'/>\n"
                           "<text x='{3}' y='{4}' text-anchor='end'>{5:.3g}</text>\n",
                           left, left + kWidth, to.y(value), left - 6, to.y(value) + 4, value);
    }
    for (const double value : to.ticks())
        out << fmt::format("<text x='{:.1f}' y='{}' text-anchor='middle'>{:.4g}</text>\n",
                           to.x(value), top + kHeight + 16, value);
    out << fmt::format("<text x='{}' y='{}' text-anchor='middle'>{}</text>\n", left + kWidth / 2,
                       top + kHeight + 36, zc::escaped(p.x_label));
    out << fmt::format("<text x='{}' y='{}' text-anchor='middle' font-weight='bold'>{}</text>\n",
                       left + kWidth / 2, top - 8, zc::escaped(caption));
    if (left == kLeft)
        out << fmt::format("<text x='14' y='{0}' text-anchor='middle' "
                           "transform='rotate(-90 14 {0})'>{1}</text>\n",
                           top + kHeight / 2, zc::escaped(p.y_label));
}

void draw_curve(std::ofstream &out, const scale &to, const curve &c, const char *colour)
{
    std::string points;
    std::string dots;
    const auto end_of_line = [&] {
        if (!points.empty())
            out << fmt::format("<polyline points='{}' fill='none' stroke='{}' "
                               "stroke-width='1.8'{}/>\n",
                               points, colour, c.dashed ? " stroke-dasharray='5 3'" : "");
        points.clear();
    };
    for (const auto &[x, y] : c.points) {
        if (std::isnan(y)) {
            end_of_line();
            continue;
        }
        points += fmt::format("{:.1f},{:.1f} ", to.x(x), to.y(y));
        dots += fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='2.4' fill='{}'/>\n", to.x(x),
                            to.y(y), colour);
    }
    end_of_line();
    out << dots;
}

void draw_panel(std::ofstream &out, const plot &p, size_t panel, double left, double top)
{
    const scale to(p, left, top);
    const auto &[caption, curves] = p.panels[panel];
    draw_axes(out, p, to, left, top, caption);
    for (size_t c = 0; c < curves.size(); c++) {
        const size_t number = curves[c].colour < 0 ? c : static_cast<size_t>(curves[c].colour);
        const char *colour = kColours[number % kColours.size()];
        draw_curve(out, to, curves[c], colour);
        const double y = top + kHeight + kBelow + static_cast<double>(c) * kLegendRow;
        out << fmt::format("<line x1='{0}' x2='{1}' y1='{2}' y2='{2}' stroke='{3}' "
                           "stroke-width='2'{4}/>\n<text x='{5}' y='{6}'>{7}</text>\n",
                           left, left + 22, y, colour,
                           curves[c].dashed ? " stroke-dasharray='5 3'" : "", left + 28, y + 4,
                           zc::escaped(curves[c].label));
    }
}

} // namespace

void write_svg(const plot &p, const std::string &path)
{
    size_t rows = 0;
    for (const auto &[caption, curves] : p.panels)
        rows = std::max(rows, curves.size());
    const size_t columns = p.columns == 0 ? p.panels.size() : p.columns;
    const size_t lines = columns == 0 ? 0 : (p.panels.size() + columns - 1) / columns;
    const double width = kLeft + static_cast<double>(columns) * (kWidth + kLeft);
    const double line = kHeight + kBelow + static_cast<double>(rows) * kLegendRow + 30;
    std::ofstream out(path);
    out << fmt::format("<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' "
                       "viewBox='0 0 {0} {1}' font-family='sans-serif' font-size='11'>\n"
                       "<rect width='100%' height='100%' fill='white'/>\n"
                       "<text x='{2}' y='24' font-size='15'>{3}</text>\n",
                       width, kTop + static_cast<double>(lines) * line - 20, kLeft,
                       zc::escaped(p.title));
    for (size_t i = 0; i < p.panels.size(); i++)
        draw_panel(out, p, i, kLeft + static_cast<double>(i % columns) * (kWidth + kLeft),
                   kTop + static_cast<double>(i / columns) * line);
    out << "</svg>\n";
    if (!out.flush())
        throw std::runtime_error(path + ": cannot be written");
}

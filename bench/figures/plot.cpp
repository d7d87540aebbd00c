/* SPDX-License-Identifier: BSD-3-Clause */
#include "plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <stdexcept>

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

std::string escaped(const std::string &text)
{
    std::string out;
    for (const char c : text)
        out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
    return out;
}

/** Maps values of one panel to places. */
class scale {
  public:
    scale(const plot &p, double left) : plot_(p), left_(left)
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
        return kTop + kHeight * (1 - std::min(value, plot_.y_most) / plot_.y_most);
    }
    std::vector<double> ticks() const
    {
        std::vector<double> out;
        if (plot_.x_powers) {
            const double step = std::max(1.0, std::ceil((last_ - first_) / 6));
            for (double power = std::ceil(first_); power <= last_; power += step)
                out.push_back(std::exp2(power));
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
    double first_;
    double last_;
};

void draw_axes(std::ofstream &out, const plot &p, const scale &to, double left,
               const std::string &caption)
{
    out << fmt::format("<rect x='{}' y='{}' width='{}' height='{}' fill='none' "
                       "stroke='#444'/>\n",
                       left, kTop, kWidth, kHeight);
    for (int i = 0; i <= 4; i++) {
        const double value = p.y_most * i / 4;
        out << fmt::format("<line x1='{0}' x2='{1}' y1='{2}' y2='{2}' stroke='#ddd'/>\n"
                           "<text x='{3}' y='{4}' text-anchor='end'>{5:.3g}</text>\n",
                           left, left + kWidth, to.y(value), left - 6, to.y(value) + 4, value);
    }
    for (const double value : to.ticks())
        out << fmt::format("<text x='{:.1f}' y='{}' text-anchor='middle'>{:.4g}</text>\n",
                           to.x(value), kTop + kHeight + 16, value);
    out << fmt::format("<text x='{}' y='{}' text-anchor='middle'>{}</text>\n", left + kWidth / 2,
                       kTop + kHeight + 36, escaped(p.x_label));
    out << fmt::format("<text x='{}' y='{}' text-anchor='middle' font-weight='bold'>{}</text>\n",
                       left + kWidth / 2, kTop - 8, escaped(caption));
}

void draw_curve(std::ofstream &out, const scale &to, const curve &c, const char *colour)
{
    std::string points;
    for (const auto &[x, y] : c.points)
        points += fmt::format("{:.1f},{:.1f} ", to.x(x), to.y(y));
    out << fmt::format("<polyline points='{}' fill='none' stroke='{}' stroke-width='1.8'{}/>\n",
                       points, colour, c.dashed ? " stroke-dasharray='5 3'" : "");
    for (const auto &[x, y] : c.points)
        out << fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='2.4' fill='{}'/>\n", to.x(x),
                           to.y(y), colour);
}

} // namespace

void write_svg(const plot &p, const std::string &path)
{
    size_t rows = 0;
    for (const auto &[caption, curves] : p.panels)
        rows = std::max(rows, curves.size());
    const double width = kLeft + static_cast<double>(p.panels.size()) * (kWidth + kLeft);
    const double legend = kTop + kHeight + kBelow;
    std::ofstream out(path);
    out << fmt::format("<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' "
                       "viewBox='0 0 {0} {1}' font-family='sans-serif' font-size='11'>\n"
                       "<rect width='100%' height='100%' fill='white'/>\n"
                       "<text x='{2}' y='24' font-size='15'>{3}</text>\n"
                       "<text x='14' y='{4}' text-anchor='middle' "
                       "transform='rotate(-90 14 {4})'>{5}</text>\n",
                       width, legend + static_cast<double>(rows) * kLegendRow + 10, kLeft,
                       escaped(p.title), kTop + kHeight / 2, escaped(p.y_label));
    for (size_t i = 0; i < p.panels.size(); i++) {
        const double left = kLeft + static_cast<double>(i) * (kWidth + kLeft);
        const scale to(p, left);
        const auto &[caption, curves] = p.panels[i];
        draw_axes(out, p, to, left, caption);
        for (size_t c = 0; c < curves.size(); c++) {
            const char *colour = kColours[c % kColours.size()];
            draw_curve(out, to, curves[c], colour);
            const double y = legend + static_cast<double>(c) * kLegendRow;
            out << fmt::format("<line x1='{0}' x2='{1}' y1='{2}' y2='{2}' stroke='{3}' "
                               "stroke-width='2'{4}/>\n<text x='{5}' y='{6}'>{7}</text>\n",
                               left, left + 22, y, colour,
                               curves[c].dashed ? " stroke-dasharray='5 3'" : "", left + 28, y + 4,
                               escaped(curves[c].label));
        }
    }
    out << "</svg>\n";
    if (!out.flush())
        throw std::runtime_error(path + ": cannot be written");
}

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BENCH_REPORT_H_INCLUDED
#define ZC_BENCH_REPORT_H_INCLUDED

#include <fstream>
#include <string>
#include <vector>

/** One line of a result file; docs/design.md, "where things come out". */
struct result {
    std::string name; /* case */
    std::string impl;
    std::string metric;
    std::string unit;
    std::vector<double> samples;
};

/** Value below which a share @part of the samples lies; 0 if there are none. */
double quantile(std::vector<double> samples, double part);

/** JSON lines: a context, then results. Throws std::runtime_error if it cannot be written. */
class report {
  public:
    enum class mode { anew, append };
    /** Appended lines get no context of their own. */
    report(const std::string &bench, const std::string &path, mode how = mode::anew);
    void add(const result &r);

  private:
    std::string bench_;
    std::string path_;
    std::ofstream out_;
};

#endif

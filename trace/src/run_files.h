/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_RUN_FILES_H_INCLUDED
#define ZCT_RUN_FILES_H_INCLUDED

#include <filesystem>
#include <string>
#include <vector>

#include "record.h"

namespace zc::zct {

/** A file of a run, without its records (count_records of record.h). */
struct run_file {
    std::filesystem::path path;
    file_records counted;
};

/** The files of @path as load() of trace.h takes them, by rank. */
std::vector<run_file> count_files(const std::filesystem::path &path,
                                  std::vector<std::string> *unreadable);

/** Of the folder of the run, without ".zct". */
std::string run_name(const std::filesystem::path &path);

} // namespace zc::zct

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include "state_file.h"

#include <filesystem>
#include <unistd.h>
#include <utility>

#include "clock.h"
#include "error.h"
#include "image_file.h"
#include "quiet_thread.h"

namespace zc::migrate {

state_file::state_file(std::string path, const registry &data, const image_header &header)
    : path_(std::move(path))
{
    std::vector<array> arrays;
    for (const auto &[name, one] : data.all())
        arrays.push_back(one);
    writer_ = quiet_thread([this, header, arrays = std::move(arrays)] {
        try {
            write(arrays, header);
        } catch (...) {
            problem_ = std::current_exception();
        }
        done_ = true;
    });
}

state_file::~state_file()
{
    given_up_ = true;
    if (writer_.joinable())
        writer_.join();
    unlink(path_.c_str());
}

void state_file::write(const std::vector<array> &arrays, const image_header &header)
{
    const double begin = seconds();
    std::error_code ignored; /* what is wrong shows when the file is written */
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
    const image_size size = stream_image(path_, header, arrays, [this] {
        if (given_up_)
            throw error(ECANCELED, "it is not wanted any more");
    });
    effort_.zero_bytes = size.zero_bytes;
    effort_.image_bytes = size.image_bytes;
    effort_.transfer_ms = ms_since(begin);
}

effort state_file::result()
{
    if (writer_.joinable())
        writer_.join();
    if (problem_)
        std::rethrow_exception(problem_);
    return effort_;
}

} // namespace zc::migrate

/* SPDX-License-Identifier: BSD-3-Clause */
#include "successor.h"

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "clock.h"
#include "crc32c.h"
#include "error.h"
#include "lineage.h"
#include "understood.h"

namespace zc::migrate {

using nlohmann::json;

namespace {

/** Where a predecessor's data is. */
struct source_of_data {
    std::string path;        /* of a file, or */
    std::uint64_t bytes = 0; /* of one image of all; else it comes in segments */
    std::uint32_t checksum = 0;
};

/** Throws what the predecessor says else. */
source_of_data source_in(const json &answer)
{
    if (answer.contains("error"))
        throw error(answer.at("code"), answer.at("error"));
    if (answer.contains("file"))
        return {answer.at("file"), 0, 0};
    if (answer.contains("image"))
        return {"", answer.at("image"), answer.at("checksum")};
    answer.at("segments").get<std::uint64_t>();
    return {};
}

} // namespace

std::string greeting::to_json() const
{
    return json{{"moved", moved},
                {"others_run", others_run},
                {"index", index},
                {"rank", rank},
                {"ranks", ranks},
                {"leavers", leavers},
                {"requests", requests},
                {"safe_points", safe_points},
                {"job", job},
                {"identity", identity},
                {"line", line},
                {"resume", resume},
                {"moves", moves},
                {"late_functions", late_functions},
                {"age_s", age_s},
                {"hosts", hosts},
                {"allowed", allowed.to_json()},
                {"program", program},
                {"library", library},
                {"features", features},
                {"bytes", bytes},
                {"layer", layer},
                {"record", record}}
        .dump();
}

greeting greeting::from_json(const std::string &text)
{
    return understood("the predecessor's greeting", text, [](const json &object) {
        greeting g;
        g.moved = object.at("moved");
        g.others_run = object.at("others_run");
        g.index = object.at("index");
        g.rank = object.at("rank");
        g.ranks = object.at("ranks");
        g.leavers = object.at("leavers").get<std::vector<int>>();
        g.safe_points = object.at("safe_points");
        g.requests = object.at("requests");
        g.job = object.at("job");
        g.identity = object.at("identity");
        g.line = object.at("line");
        g.resume = object.at("resume");
        g.moves = object.at("moves");
        g.late_functions = object.at("late_functions");
        g.age_s = object.at("age_s");
        g.allowed = allowed_hosts::from_json(object.at("allowed"));
        g.program = object.at("program");
        g.library = object.at("library");
        g.features = object.at("features");
        g.bytes = object.at("bytes");
        g.hosts = object.at("hosts").get<std::set<std::string>>();
        g.layer = object.at("layer");
        g.record = object.at("record");
        return g;
    });
}

void check_header(const image_reader &image, const image_header &expected, const std::string &path)
{
    const auto describe = [](const image_header &h) {
        return "rank " + std::to_string(h.rank) + " of " + std::to_string(h.ranks) +
               " at safe point " + std::to_string(h.safe_point) + " of job " + digits_of(h.job);
    };
    const std::string found = describe(image.header()), wanted = describe(expected);
    if (found != wanted)
        throw error(EBADMSG, path + " is of " + found + ", not of " + wanted);
}

void from_file::restore(const array &target)
{
    reader_.read(target);
    restored_.insert(target.name);
}

const std::vector<std::string> &from_file::names()
{
    if (names_.empty())
        names_ = reader_.names();
    return names_;
}

std::string from_file::forgotten() const
{
    for (const std::string &name : reader_.names())
        if (!restored_.contains(name))
            return name;
    return "";
}

void from_predecessor::leave(const std::string &why) noexcept
{
    try {
        if (!line_->is_abandoned()) {
            line_->send(word::failed, why);
            /* The other leavers may take longer; a dead predecessor shows when it is pinged. */
            line_->drain(word::abandon, kNoLimit);
        }
        transfer_.cancel();
        line_->send_until_taken(word::left);
    } catch (const std::exception &) {
        /* The predecessor has gone, then. */
    }
}

void from_predecessor::restore(const array &target)
{
    line_->send(
        word::ask,
        json{{"name", target.name}, {"type", target.type_name()}, {"count", target.count}}.dump());
    const message said = line_->receive();
    if (said.what != word::answer)
        throw error(EPIPE, "the predecessor gave up");
    const source_of_data from = understood("the predecessor's answer", said.text, source_in);
    if (from.path.empty() && from.bytes == 0) {
        if (settings_.fault_injected(fault::successor_killed_data))
            raise(SIGKILL);
        if (settings_.fault_injected(fault::successor_stops) && transfer::segments(target) > 1)
            raise(SIGSTOP);
        transfer_.receive(target, effort_);
        return;
    }
    if (!file_ && from.bytes > 0)
        open_image(from.bytes, from.checksum);
    const double begin = seconds();
    if (!file_)
        open_file(from.path);
    file_->read(target);
    effort_.restore_ms += ms_since(begin);
}

void from_predecessor::open_file(const std::string &path)
{
    auto file = std::make_unique<image_reader>(path);
    check_header(*file, expected_, path);
    file_ = std::move(file);
}

void from_predecessor::open_image(std::uint64_t bytes, std::uint32_t checksum)
{
    const std::span<const std::byte> image = transfer_.receive_whole(bytes, effort_);
    if (zc_crc32c(0, image.data(), image.size()) != checksum)
        throw error(EBADMSG,
                    "the predecessor's image was corrupted in transit: its checksum differs");
    auto file = std::make_unique<image_reader>(image, checksums::none);
    check_header(*file, expected_, "the predecessor's image");
    file_ = std::move(file);
}

void from_predecessor::list()
{
    if (listed_)
        return;
    line_->send(word::list);
    const message said = line_->receive();
    if (said.what != word::listing)
        throw error(EPIPE, "the predecessor gave up");
    understood("the predecessor's list", said.text, [this](const json &listing) {
        names_ = listing.at("names").get<std::vector<std::string>>();
        counts_ = listing.at("counts").get<std::vector<std::uint64_t>>();
        counts_.resize(names_.size());
    });
    listed_ = true;
}

std::optional<std::uint64_t> from_predecessor::count(const std::string &name)
{
    list();
    const auto found = std::ranges::lower_bound(names_, name);
    if (found == names_.end() || *found != name)
        return std::nullopt;
    return counts_[static_cast<std::size_t>(found - names_.begin())];
}

const std::vector<std::string> &from_predecessor::names()
{
    list();
    return names_;
}

} // namespace zc::migrate

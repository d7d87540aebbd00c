/* SPDX-License-Identifier: BSD-3-Clause */
#include "move_transaction.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace zc::holder {
namespace {

using namespace std::chrono_literals;

/* Reading an image takes longer than an answer. */
constexpr int kRestorePatience = 10;
constexpr std::chrono::milliseconds kLongestPause{2000};
constexpr std::uint64_t kWorthKib = 32 << 10; /* less memory is sent at once as soon */

double ms(std::chrono::steady_clock::duration time)
{
    return std::chrono::duration<double, std::milli>(time).count();
}

std::string all_of(const nlohmann::json &reasons)
{
    std::string text;
    for (const std::string reason : reasons)
        text += (text.empty() ? "" : "; ") + reason;
    return text;
}

} // namespace

move_transaction::move_transaction(move_parties &parties, std::uint64_t incarnation, time_point now,
                                   std::chrono::milliseconds patience,
                                   std::chrono::milliseconds waits, nlohmann::json with,
                                   std::chrono::milliseconds within)
    : parties_(parties), incarnation_(incarnation), patience_(patience), waits_(waits),
      within_(within), with_(std::move(with)), begin_(now), since_(now)
{
}

void move_transaction::begin()
{
    parties_.ask_source({{"do", "examine"}});
}

void move_transaction::enter(phase next, time_point now)
{
    phase_ = next;
    since_ = now;
}

std::chrono::milliseconds move_transaction::left_until_late(time_point now) const
{
    return std::chrono::floor<std::chrono::milliseconds>(within_ - (now - begin_));
}

bool move_transaction::waits_too_long(time_point now) const
{
    return now - since_ > waits_ ||
           (within_ > 0ms && static_cast<double>(left_until_late(now).count()) < rest_ms_);
}

void move_transaction::note(const nlohmann::json &what, const char *from, const char *to)
{
    if (what.contains(from))
        result_[to] = what.at(from);
}

void move_transaction::source_said(const nlohmann::json &what, time_point now)
{
    const std::string said = what.value("said", "");
    rest_ms_ = what.value("rest_ms", rest_ms_);
    if (said == "examined" && phase_ == phase::EXAMINING) {
        if (!what.at("refused").empty())
            return give_up(all_of(what.at("refused")), now);
        kib_ = what.at("needs").value("kib", std::uint64_t{0});
        can_copy_ = what.value("copies", false);
        enter(phase::PREPARING, now);
        parties_.prepare(what.at("needs"));
    } else if (said == "ready" && phase_ == phase::COPYING && waits_ > 0ms) {
        become_ready(now);
    } else if (said == "copied" && phase_ >= phase::COPYING && phase_ <= phase::FINISHING) {
        if (what.contains("ms")) /* what it has waited for others is not counted twice */
            result_["copy_ms"] = std::max(0.0, what.at("ms").get<double>() - waited_ms_);
        note(what, "bytes", "copied");
        note(what, "rounds", "rounds");
        note(what, "ended", "copy_ended");
        note(what, "not_tracked", "not_tracked");
        copied_ = true;
        /* Without a time nothing was copied, as it is leaving, or has left. */
        waits_ > 0ms && what.contains("ms") ? become_ready(now) : ask_to_leave(now);
    } else if (said == "detached" && phase_ != phase::LEAVING) {
        detached_ = true; /* it was asked by a move before, which was given up */
        wait_no_longer(now);
    } else if (said == "detached") {
        detached_ = true;
        note(what, "ms", "leave_ms");
        if (what.contains("refused") && !what.at("refused").empty())
            return give_up(all_of(what.at("refused")), now);
        enter(phase::SENDING, now);
        parties_.ask_source({{"do", "send"}, {"to", image_}, {"key", key_}, {"lazy", lazy_}});
    } else if (said == "sent" && phase_ == phase::SENDING) {
        for (const char *name : {"bytes", "bytes_there", "left_out", "unread", "dump_ms", "send_ms",
                                 "lazy", "not_lazy"})
            note(what, name, name);
        sent_ = true;
        enter(phase::RESTORING, now);
        if (restored_)
            commit(now);
    } else if (said == "bound" && phase_ == phase::RETURNING) {
        note(what, "ms", "bind_ms");
        finish(false);
    } else if (said == "failed" && phase_ == phase::RETURNING) {
        why_ += "; and the rank does not come back: " + what.value("why", "");
        finish(false);
    } else if (said == "failed" && phase_ == phase::LEAVING && copies_ &&
               what.value("again", false)) {
        refusal_ = what.value("why", "");
        again_at_ = now + pause_;
        pause_ = std::min(2 * pause_, kLongestPause);
    } else if (said == "failed" && phase_ != phase::GOING && phase_ != phase::DONE) {
        note(what, "again", "again");
        note(what, "other_host", "other_host");
        give_up(what.value("why", "no reason is given"), now);
    }
}

void move_transaction::prepared(const nlohmann::json &what, time_point now)
{
    if (phase_ != phase::PREPARING)
        return;
    if (what.contains("refused")) {
        note(what, "again", "again");
        return other_host_fails("the other host: " + all_of(what.at("refused")), now);
    }
    const auto is_text = [&](const char *name) {
        return what.contains(name) && what.at(name).is_string();
    };
    if (!is_text("image") || !is_text("key"))
        return other_host_fails("the other host: its zc-hold is of another build", now);
    image_ = what.at("image");
    key_ = what.at("key");
    lazy_ = what.value("lazy", false);
    note(what, "lazy", "lazy");
    note(what, "not_lazy", "not_lazy");
    const std::uint64_t room = what.value("room", std::uint64_t{0});
    if (!can_copy_ || room == 0 || kib_ < kWorthKib)
        return waits_ > 0ms ? become_ready(now) : ask_to_leave(now);
    copies_ = true;
    enter(phase::COPYING, now);
    nlohmann::json copy = {{"do", "copy"},         {"to", image_},
                           {"key", key_},          {"most", room << 10},
                           {"lazy", lazy_},        {"track", lazy_ && what.value("track", false)},
                           {"waits", waits_ > 0ms}};
    if (within_ > 0ms)
        copy["within_ms"] = std::max<std::int64_t>(0, left_until_late(now).count());
    parties_.ask_source(copy);
}

void move_transaction::become_ready(time_point now)
{
    enter(phase::READY, now);
    parties_.ready(!copies_ || copied_);
}

void move_transaction::go(time_point now)
{
    if (phase_ != phase::READY)
        return;
    const auto waited = now - since_;
    waited_ms_ += ms(waited);
    result_["wait_ms"] = waited_ms_;
    waits_ -= std::min(waits_, std::chrono::ceil<std::chrono::milliseconds>(waited));
    if (!copies_ || copied_)
        return ask_to_leave(now);
    enter(phase::FINISHING, now);
    parties_.ask_source({{"do", "finish"}});
}

void move_transaction::wait_no_longer(time_point now)
{
    const bool waited = std::exchange(waits_, 0ms) > 0ms;
    if (waited && phase_ == phase::COPYING) /* or it would go on until it is told */
        parties_.ask_source({{"do", "finish"}});
    go(now);
}

void move_transaction::ask_to_leave(time_point now)
{
    enter(phase::LEAVING, now);
    order_to_leave();
}

void move_transaction::order_to_leave()
{
    parties_.ask_source({{"do", "leave"}, {"lazy", lazy_}, {"with", with_}});
}

void move_transaction::target_said(const nlohmann::json &what, time_point now)
{
    const std::string said = what.value("said", "");
    if (said == "restored" && (phase_ == phase::SENDING || phase_ == phase::RESTORING)) {
        note(what, "ms", "restore_ms");
        restored_ = true;
        if (sent_)
            commit(now);
    } else if (said == "bound" && phase_ == phase::GOING) {
        note(what, "ms", "bind_ms");
        finish(true);
    } else if (said == "failed" && phase_ == phase::GOING) {
        why_ = what.value("why", "");
        finish(true);
    } else if (said == "failed") {
        other_host_fails("the other host: " + what.value("why", ""), now);
    }
}

void move_transaction::commit(time_point now)
{
    try {
        parties_.commit(incarnation_ + 1, true);
    } catch (const std::exception &problem) {
        return give_up(std::string("no record: ") + problem.what(), now);
    }
    incarnation_++;
    committed_ = true;
    enter(phase::GOING, now);
    parties_.hand_over();
    parties_.ask_target({{"do", "go"}, {"incarnation", incarnation_}});
}

void move_transaction::give_up(const std::string &why, time_point now)
{
    why_ = why;
    if (phase_ == phase::GOING || phase_ == phase::RETURNING || phase_ == phase::DONE)
        return;
    parties_.ask_target({{"do", "end"}});
    if (!detached_) {
        /* It forgets what was sent, and others have the room for its image. */
        if (can_copy_)
            parties_.ask_source({{"do", "stay"}});
        return finish(false); /* if it detaches later it is given the next token then */
    }
    try {
        parties_.commit(incarnation_ + 1, false);
    } catch (const std::exception &problem) {
        /* There is none for the target, either, and there will be none: this process decides. */
        why_ += std::string("; no record: ") + problem.what();
    }
    incarnation_++;
    enter(phase::RETURNING, now);
    parties_.ask_source({{"do", "thaw"}, {"incarnation", incarnation_}});
}

void move_transaction::other_host_fails(const std::string &why, time_point now)
{
    result_["other_host"] = true;
    give_up(why, now);
}

void move_transaction::target_lost(const std::string &why, time_point now)
{
    if (phase_ == phase::GOING) {
        why_ = why;
        finish(true);
    } else if (phase_ != phase::DONE) {
        other_host_fails(why, now);
    }
}

bool move_transaction::source_lost(const std::string &why, time_point now)
{
    if (sent_ && (phase_ == phase::RESTORING || phase_ == phase::GOING))
        return false;
    if (phase_ != phase::DONE) {
        parties_.ask_target({{"do", "end"}});
        why_ = why;
        enter(phase::DONE, now);
        finish(false);
    }
    return true;
}

void move_transaction::tick(time_point now)
{
    const auto waited = now - since_;
    switch (phase_) {
    case phase::LEAVING:
        if (again_at_ && now >= *again_at_) {
            again_at_.reset();
            order_to_leave();
        }
        [[fallthrough]];
    case phase::EXAMINING:
        if (waited <= patience_)
            break;
        if (!refusal_.empty())
            result_["again"] = true;
        give_up(!refusal_.empty() ? refusal_ : "the rank does not leave: it does not answer", now);
        break;
    case phase::PREPARING:
        if (waited > patience_)
            other_host_fails("the other host does not answer", now);
        break;
    case phase::RESTORING:
        if (waited > kRestorePatience * patience_)
            other_host_fails("the other host does not restore the rank", now);
        break;
    case phase::RETURNING:
        if (waited > kRestorePatience * patience_) {
            why_ += "; and the rank is not bound again";
            finish(false);
        }
        break;
    case phase::READY:
        if (waits_too_long(now))
            wait_no_longer(now);
        break;
    case phase::COPYING: /* these take as long as they do; a host that is lost is noticed */
    case phase::FINISHING:
    case phase::SENDING:
    case phase::GOING:
    case phase::DONE:
        break;
    }
}

void move_transaction::finish(bool well)
{
    phase_ = phase::DONE;
    result_["ok"] = well && why_.empty();
    result_["incarnation"] = incarnation_;
    if (!why_.empty())
        result_["why"] = why_;
    const auto took = std::chrono::steady_clock::now() - begin_;
    result_["ms"] = ms(took);
    if (within_ > 0ms)
        result_["late_ms"] = std::max(0.0, ms(took - within_));
    parties_.finished(result_);
}

} // namespace zc::holder

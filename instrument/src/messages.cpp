/* SPDX-License-Identifier: BSD-3-Clause */
#include "messages.h"

#include "iteration.h"

#include <algorithm>

namespace zc::instrument {

using llvm::dyn_cast;

namespace {

using conditions = std::set<std::string>;

struct half {
    std::string place;
    conditions when;
};

/* By tag. That of an expression begins with a space, and so does none that is a number. */
using halves = std::map<std::string, std::vector<half>>;

const std::string kAny = "any", kNotDecided = " ?";

class matching {
  public:
    matching(const program &all, const call_graph &calls, const accesses &used, const loop &one)
        : program_(all), calls_(calls), now_(all, calls, used, one)
    {
        for (const auto &site : now_.calls())
            if (const auto *known = known_of(site.second)) {
                note(site, known->tag, now_.conditions_of(*site.first, site.second), sent_);
                note(site, known->other_tag, now_.conditions_of(*site.first, site.second),
                     received_);
                note_start(site, *known);
            }
        if (!starts_.empty())
            note_persistent();
        for (const auto &[in, call] : one.way)
            note_around(*in, call ? static_cast<const clang::Stmt *>(call) : one.statement);
    }

    findings find()
    {
        compare(sent_, received_, "sent", "received");
        compare(received_, sent_, "received", "sent");
        compare_around();
        return std::move(found_);
    }

  private:
    const known_call *known_of(const clang::CallExpr *call) const
    {
        const auto *callee = callee_of(call);
        const auto *known =
            callee && !program_.find(callee) ? find_known(callee->getNameAsString()) : nullptr;
        return known && known->what == known_call::kind::sends ? known : nullptr;
    }

    static bool is_made(const known_call &known)
    {
        for (unsigned i = 0; i < known.arguments.size(); i++)
            if (known.effect(i) == 'P')
                return true;
        return false;
    }

    void note(const iteration::call_site &at, int argument, const conditions &when, halves &to)
    {
        const auto &[in, call] = at;
        const auto *known = known_of(call);
        if (argument < 0 || static_cast<unsigned>(argument) >= call->getNumArgs() ||
            is_made(*known))
            return;
        for (const auto &tag : tags_of(*in, call->getArg(argument)))
            to[tag].push_back({in->place(call), when});
    }

    /* Calls in front of the safe point's loop, and behind it, at @point in a function of the stack.
     */
    void note_around(const function &in, const clang::Stmt *point)
    {
        const auto &sources = in.context().getSourceManager();
        std::set<const clang::Stmt *> within;
        for_each_statement(point, [&](const clang::Stmt *each) { within.insert(each); });
        for_each_statement(in.decl->getBody(), [&](const clang::Stmt *each) {
            const auto *call = llvm::dyn_cast_or_null<clang::CallExpr>(each);
            if (!call || within.count(call))
                return;
            const bool is_before =
                sources.isBeforeInTranslationUnit(call->getBeginLoc(), point->getBeginLoc());
            for (const auto &site : calls_.calls_below(in, call))
                if (const auto *known = known_of(site.second)) {
                    if (is_before)
                        note(site, known->tag, {}, sent_before_);
                    note(site, known->other_tag, {},
                         is_before ? received_before_ : received_behind_);
                }
        });
    }

    /* A message that is sent in front of the loop, and not received there, is on its way in all of
     * it; or another is, each time, if the loop first receives and then sends the next. By their
     * tags alone: neither is run once in an iteration. */
    void compare_around()
    {
        for (const auto &[tag, all] : sent_before_) {
            if (received_before_.count(tag) || received_before_.count(kAny))
                continue;
            for (const auto *later : {&received_, &received_behind_})
                if (later->count(tag) || later->count(kAny)) {
                    found_.push_back(
                        {all.front().place,
                         "a message is sent in front of this loop, and received in or behind it" +
                             (tag[0] == ' ' ? "" : ": its tag is " + tag)});
                    break;
                }
        }
    }

    /* What a persistent request sends is said where it is made, and it is on its way from where it
     * is started. Which of them that is, is not followed: all of the program are. */
    void note_start(const iteration::call_site &at, const known_call &known)
    {
        if (known.effect(0) != 'S' && known.effect(1) != 'T')
            return;
        const auto when = now_.conditions_of(*at.first, at.second);
        if (!starts_.empty() && starts_.front().when != when)
            found_.push_back({at.first->place(at.second),
                              "could not decide whether a message is on its way: this starts "
                              "persistent requests in other iterations than what is at " +
                                  starts_.front().place});
        starts_.push_back({at.first->place(at.second), when});
    }

    void note_persistent()
    {
        for (const auto &[name, one] : program_.functions())
            for_each_statement(one.decl->getBody(), [&, in = &one](const clang::Stmt *each) {
                const auto *call = llvm::dyn_cast_or_null<clang::CallExpr>(each);
                const auto *known = call ? known_of(call) : nullptr;
                if (!known || !is_made(*known))
                    return;
                for (const auto &[argument, to] :
                     {std::pair(known->tag, &sent_), std::pair(known->other_tag, &received_)})
                    if (argument >= 0)
                        for (const auto &tag : tags_of(*in, call->getArg(argument)))
                            (*to)[tag].push_back({in->place(call), starts_.front().when});
            });
    }

    /* A tag's number or text; of a parameter, all that it is called with. */
    std::set<std::string> tags_of(const function &in, const clang::Expr *tag) const
    {
        clang::Expr::EvalResult value;
        if (tag->EvaluateAsInt(value, in.context())) {
            const auto number = value.Val.getInt().getExtValue();
            return {number < 0 ? kAny : std::to_string(number)}; /* MPI_ANY_TAG */
        }
        if (!now_.is_fixed(in, tag, iteration::span::one_iteration))
            return {kNotDecided};
        const auto *reference = dyn_cast<clang::DeclRefExpr>(tag->IgnoreParenCasts());
        const auto *parameter =
            reference ? dyn_cast<clang::ParmVarDecl>(reference->getDecl()) : nullptr;
        if (!parameter || calls_.callers_of(in).empty())
            return {" " + now_.text_of(in, tag)};
        const auto [known, is_new] = of_parameters_.try_emplace(parameter);
        if (is_new) /* once: there may be as many paths to it as one likes */
            known->second = tags_of_arguments(in, parameter->getFunctionScopeIndex());
        return known->second;
    }

    std::set<std::string> tags_of_arguments(const function &in, unsigned number) const
    {
        std::set<std::string> found;
        for (const auto &[caller, call] : calls_.callers_of(in)) {
            if (number >= call->getNumArgs())
                return {kNotDecided};
            const auto more = tags_of(*caller, call->getArg(number));
            found.insert(more.begin(), more.end());
        }
        return found;
    }

    static bool has(const halves &all, const std::string &tag, const conditions &when)
    {
        const auto found = all.find(tag);
        return found != all.end() && std::any_of(found->second.begin(), found->second.end(),
                                                 [&](const half &one) { return one.when == when; });
    }

    void compare(const halves &these, const halves &others, const std::string &done,
                 const std::string &undone)
    {
        for (const auto &[tag, all] : these) {
            if (tag == kAny)
                continue;
            for (const auto &one : all) {
                if (tag != kNotDecided &&
                    (has(others, tag, one.when) || has(others, kAny, one.when)))
                    continue;
                found_.push_back({one.place, reason(tag, others, done, undone)});
                break;
            }
        }
    }

    static std::string reason(const std::string &tag, const halves &others, const std::string &done,
                              const std::string &undone)
    {
        const std::string undecided = "could not decide whether a message is on its way: it is " +
                                      done + " in this loop, and ";
        const auto is_computed = [](const auto &one) { return one.first[0] == ' '; };
        if (tag[0] == ' ')
            return undecided + "its tag is computed, and not by the same expression where one is " +
                   undone;
        if (others.count(tag) || others.count(kAny))
            return undecided + "not known to be " + undone +
                   " in the same iterations of it: its tag is " + tag;
        if (std::any_of(others.begin(), others.end(), is_computed))
            return undecided + "tags of what is " + undone + " in it are computed: its tag is " +
                   tag;
        return "a message is " + done + " in this loop, and " + undone +
               " outside of it: its tag is " + tag;
    }

    const program &program_;
    const call_graph &calls_;
    iteration now_;
    halves sent_, received_, sent_before_, received_before_, received_behind_;
    std::vector<half> starts_;
    mutable std::map<const clang::ParmVarDecl *, std::set<std::string>> of_parameters_;
    findings found_;
};

} // namespace

findings messages::unmatched_in(const loop &one) const
{
    return matching(program_, calls_, used_, one).find();
}

} // namespace zc::instrument

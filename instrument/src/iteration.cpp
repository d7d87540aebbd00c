/* SPDX-License-Identifier: BSD-3-Clause */
#include "iteration.h"

#include "control.h"

#include <algorithm>
#include <llvm/Support/raw_ostream.h>

namespace zc::instrument {

using llvm::dyn_cast;
using llvm::dyn_cast_or_null;
using llvm::isa;
using llvm::isa_and_nonnull;

namespace {

const clang::VarDecl *variable_of(const clang::Expr *value)
{
    const auto *reference = dyn_cast_or_null<clang::DeclRefExpr>(value->IgnoreParenCasts());
    return reference ? dyn_cast<clang::VarDecl>(reference->getDecl()) : nullptr;
}

} // namespace

iteration::iteration(const program &all, const call_graph &calls, const accesses &used,
                     const loop &one)
    : program_(all), graph_(calls), used_(used), loop_(one)
{
    for (const auto &outer : loops_around(one))
        around_.insert(outer.statement);
    around_.insert(one.statement);
    for (const auto &[name, in] : all.functions())
        note_addresses(in, in.decl->getBody());
    note_surroundings();
    note_body();
}

void iteration::note_body()
{
    const auto *body = body_of(loop_.statement);
    declared_.clear();
    called_ = graph_.called_below(body);
    note_writes(*loop_.in, body, written_in_body_);
    for (const auto *in : called_)
        note_writes(*in, in->decl->getBody(), written_in_body_);
}

/* What is run between two iterations: of the loop, and of those around it. */
void iteration::note_surroundings()
{
    const auto outer = loops_around(loop_);
    const auto &outermost = outer.empty() ? loop_ : outer.front();
    if (outer.empty()) {
        if (const auto *counted = dyn_cast<clang::ForStmt>(loop_.statement))
            note_writes(*loop_.in, counted->getInc(), written_between_);
        note_writes(*loop_.in, condition_of(loop_.statement), written_between_);
        return;
    }
    called_around_ = graph_.called_below(outermost.statement);
    note_writes(*outermost.in, outermost.statement, written_between_);
    for (const auto *in : called_around_)
        note_writes(*in, in->decl->getBody(), written_between_);
    declared_around_ = declared_;
}

/* Of objects whose address is taken, and of fields that are arrays and become one. */
void iteration::note_addresses(const function &in, const clang::Stmt *root)
{
    for_each_statement(root, [&](const clang::Stmt *each) {
        const clang::Expr *object = nullptr;
        if (const auto *op = dyn_cast_or_null<clang::UnaryOperator>(each))
            object = op->getOpcode() == clang::UO_AddrOf ? op->getSubExpr() : nullptr;
        if (const auto *cast = dyn_cast_or_null<clang::ImplicitCastExpr>(each);
            cast && cast->getCastKind() == clang::CK_ArrayToPointerDecay)
            object = dyn_cast<clang::MemberExpr>(cast->getSubExpr()->IgnoreParens());
        if (object && is_kept_somewhere(in, each))
            note_write(object, aliased_);
    });
}

/* Not only used where it is computed. */
bool iteration::is_kept_somewhere(const function &in, const clang::Stmt *address) const
{
    const clang::Stmt *up = parent_of(in, address), *child = address;
    for (; isa_and_nonnull<clang::CastExpr, clang::ParenExpr>(up); up = parent_of(in, up))
        child = up;
    if (isa_and_nonnull<clang::ArraySubscriptExpr>(up))
        return false;
    const auto *call = dyn_cast_or_null<clang::CallExpr>(up);
    for (unsigned i = 0; call && i < call->getNumArgs(); i++)
        if (call->getArg(i) == child)
            return program_.find(callee_of(call)) && used_.of_argument(call, i).escapes;
    return true;
}

/* `for (k = 0; ...; k++)`: what it gives k is the same each time if that from which k starts is. */
bool iteration::is_of_counter(const function &in, const clang::Stmt *write,
                              const clang::Expr *variable)
{
    const auto *counter = variable_of(variable);
    if (!counter || !isa<clang::DeclRefExpr>(variable->IgnoreParens()))
        return false;
    const clang::Stmt *part = write;
    const clang::Stmt *up = parent_of(in, part);
    for (; isa_and_nonnull<clang::BinaryOperator>(up); up = parent_of(in, up))
        part = up;
    const auto *within = dyn_cast_or_null<clang::ForStmt>(up);
    if (!within || around_.count(within))
        return false;
    auto &starts = counters_[program::key(counter)];
    if (part == within->getInit()) {
        const auto *op = dyn_cast<clang::BinaryOperator>(write);
        starts.push_back({&in, op && !op->isCompoundAssignmentOp() ? op->getRHS() : nullptr});
        return true;
    }
    if (part != within->getInc())
        return false;
    bool begins_here = false;
    for_each_statement(within->getInit(), [&](const clang::Stmt *each) {
        const auto *op = dyn_cast_or_null<clang::BinaryOperator>(each);
        begins_here |= op && op->isAssignmentOp() && variable_of(op->getLHS()) == counter;
        if (const auto *declaration = dyn_cast_or_null<clang::DeclStmt>(each))
            for (const auto *decl : declaration->decls())
                begins_here |= decl == counter;
    });
    if (const auto *op = dyn_cast<clang::BinaryOperator>(write))
        starts.push_back({&in, op->isCompoundAssignmentOp() ? op->getRHS() : nullptr});
    return begins_here;
}

void iteration::note_writes(const function &in, const clang::Stmt *root, std::set<std::string> &to)
{
    for_each_statement(root, [&](const clang::Stmt *each) {
        if (const auto *op = dyn_cast_or_null<clang::BinaryOperator>(each)) {
            if (op->isAssignmentOp() && !is_of_counter(in, op, op->getLHS()))
                note_write(op->getLHS(), to);
        } else if (const auto *count = dyn_cast_or_null<clang::UnaryOperator>(each)) {
            if (count->isIncrementDecrementOp() && !is_of_counter(in, count, count->getSubExpr()))
                note_write(count->getSubExpr(), to);
        } else if (const auto *declaration = dyn_cast_or_null<clang::DeclStmt>(each)) {
            for (const auto *decl : declaration->decls())
                if (const auto *variable = dyn_cast<clang::VarDecl>(decl))
                    declared_.insert(variable);
        } else if (const auto *call = dyn_cast_or_null<clang::CallExpr>(each)) {
            for (unsigned i = 0; i < call->getNumArgs(); i++) {
                const auto what = used_.of_argument(call, i);
                if (call->getArg(i)->getType()->isPointerType() && (what.writes || what.escapes))
                    note_write_by(call->getArg(i), to);
            }
        }
    });
}

/* @object gets a value. */
void iteration::note_write(const clang::Expr *object, std::set<std::string> &to) const
{
    object = object->IgnoreParenCasts();
    add_fields(object->getType()->getAsRecordDecl(), to);
    if (const auto *member = dyn_cast<clang::MemberExpr>(object)) {
        if (const auto *field = dyn_cast<clang::FieldDecl>(member->getMemberDecl()))
            to.insert(program::key(field));
    } else if (const auto *subscript = dyn_cast<clang::ArraySubscriptExpr>(object)) {
        note_write_by(subscript->getBase(), to);
    } else if (const auto *op = dyn_cast<clang::UnaryOperator>(object)) {
        note_write_by(op->getSubExpr(), to);
    } else if (const auto *variable = variable_of(object)) {
        to.insert(program::key(variable));
    }
}

/* What @pointer leads to gets one: of variables, only if the text names them; escaping() has the
 * others. */
void iteration::note_write_by(const clang::Expr *pointer, std::set<std::string> &to) const
{
    pointer = pointer->IgnoreParenCasts();
    const auto type = pointer->getType();
    if (type->isPointerType())
        add_fields(type->getPointeeType()->getAsRecordDecl(), to);
    if (type->isArrayType())
        note_write(pointer, to);
    else if (const auto *op = dyn_cast<clang::UnaryOperator>(pointer))
        note_write(op->getSubExpr(), to);
    else if (const auto *sum = dyn_cast<clang::BinaryOperator>(pointer)) {
        note_write_by(sum->getLHS(), to);
        note_write_by(sum->getRHS(), to);
    } else if (const auto *choice = dyn_cast<clang::ConditionalOperator>(pointer)) {
        note_write_by(choice->getTrueExpr(), to);
        note_write_by(choice->getFalseExpr(), to);
    }
}

bool iteration::is_written(const std::string &key, span over) const
{
    return written_in_body_.count(key) || aliased_.count(key) ||
           (over == span::all_iterations && written_between_.count(key));
}

/* A parameter of a function that the iteration calls is as what it is called with. */
bool iteration::is_fixed_argument(const clang::ParmVarDecl *parameter, span over) const
{
    const auto *decl = dyn_cast<clang::FunctionDecl>(parameter->getDeclContext());
    const auto *one = program_.find(decl);
    if (!one ||
        !(called_.count(one) || (over == span::all_iterations && called_around_.count(one))))
        return true;
    const auto number = parameter->getFunctionScopeIndex();
    const auto &callers = graph_.callers_of(*one);
    return std::all_of(callers.begin(), callers.end(), [&](const auto &site) {
        return callee_of(site.call) && program_.find(callee_of(site.call)) == one &&
               number < site.call->getNumArgs() &&
               is_fixed(*site.in, site.call->getArg(number), over);
    });
}

/* The loop around @at that counts @counter. */
const clang::ForStmt *iteration::counting(const function &in, const clang::Stmt *at,
                                          const clang::VarDecl *counter) const
{
    for (const auto *up = parent_of(in, at); up; up = parent_of(in, up)) {
        const auto *each = dyn_cast<clang::ForStmt>(up);
        bool is_counted = false;
        if (each && !around_.count(each))
            for_each_statement(each->getInc(), [&](const clang::Stmt *write) {
                if (const auto *count = dyn_cast_or_null<clang::UnaryOperator>(write))
                    is_counted |= count->isIncrementDecrementOp() &&
                                  variable_of(count->getSubExpr()) == counter;
                if (const auto *op = dyn_cast_or_null<clang::BinaryOperator>(write))
                    is_counted |= op->isAssignmentOp() && variable_of(op->getLHS()) == counter;
            });
        if (is_counted)
            return each;
    }
    return nullptr;
}

/* Asked for once: what is computed of what is computed has as many paths through it as one likes.
 * One that is asked for while it is followed depends on itself, and is taken to differ. */
bool iteration::is_fixed_variable(const clang::VarDecl *variable, span over) const
{
    const auto [known, is_new] = fixed_.try_emplace({variable, over}, false);
    if (is_new)
        known->second = follow(variable, over);
    return known->second;
}

bool iteration::follow(const clang::VarDecl *variable, span over) const
{
    const auto key = program::key(variable);
    if (is_written(key, over) || used_.escaping().count(key))
        return false;
    if (const auto found = counters_.find(key); found != counters_.end())
        for (const auto &[in, value] : found->second)
            if (value && !is_fixed(*in, value, over))
                return false;
    if (const auto *parameter = dyn_cast<clang::ParmVarDecl>(variable))
        return is_fixed_argument(parameter, over);
    const bool is_new = declared_.count(variable) ||
                        (over == span::all_iterations && declared_around_.count(variable));
    if (!is_new || variable->hasGlobalStorage())
        return true;
    const auto *owner =
        program_.find(dyn_cast<clang::FunctionDecl>(variable->getParentFunctionOrMethod()));
    if (!variable->getInit() || !owner)
        return counters_.count(key) > 0;
    return is_fixed(*owner, variable->getInit(), over);
}

bool iteration::is_fixed_call(const function &in, const clang::CallExpr *call, span over) const
{
    const auto *callee = callee_of(call);
    const auto *known =
        callee && !program_.find(callee) ? find_known(callee->getNameAsString()) : nullptr;
    if (!known || known->what != known_call::kind::pure)
        return false;
    for (unsigned i = 0; i < call->getNumArgs(); i++)
        if (call->getArg(i)->getType()->isPointerType() || !is_fixed(in, call->getArg(i), over))
            return false;
    return true;
}

bool iteration::is_fixed(const function &in, const clang::Expr *value, span over) const
{
    clang::Expr::EvalResult number;
    if (!value || value->EvaluateAsInt(number, in.context()))
        return true;
    value = value->IgnoreParenCasts();
    if (const auto *reference = dyn_cast<clang::DeclRefExpr>(value)) {
        const auto *variable = dyn_cast<clang::VarDecl>(reference->getDecl());
        if (!variable)
            return true;
        /* Behind its loop a counter is what the condition has left it at. */
        if (counters_.count(program::key(variable)) && !counting(in, value, variable))
            return false;
        return is_fixed_variable(variable, over);
    }
    if (const auto *member = dyn_cast<clang::MemberExpr>(value)) {
        const auto *field = dyn_cast<clang::FieldDecl>(member->getMemberDecl());
        return field && !is_written(program::key(field), over) &&
               is_fixed(in, member->getBase(), over);
    }
    if (const auto *subscript = dyn_cast<clang::ArraySubscriptExpr>(value)) {
        const auto *base = subscript->getBase()->IgnoreParenCasts();
        return base->getType()->isArrayType() && is_fixed(in, base, over) &&
               is_fixed(in, subscript->getIdx(), over);
    }
    if (const auto *call = dyn_cast<clang::CallExpr>(value))
        return is_fixed_call(in, call, over);
    if (const auto *op = dyn_cast<clang::UnaryOperator>(value);
        op && (op->isIncrementDecrementOp() || op->getOpcode() == clang::UO_Deref))
        return false;
    if (const auto *op = dyn_cast<clang::BinaryOperator>(value); op && op->isAssignmentOp())
        return false;
    if (!isa<clang::UnaryOperator, clang::BinaryOperator, clang::ConditionalOperator,
             clang::IntegerLiteral, clang::FloatingLiteral, clang::UnaryExprOrTypeTraitExpr>(value))
        return false;
    return std::all_of(value->child_begin(), value->child_end(), [&](const clang::Stmt *child) {
        const auto *below = dyn_cast_or_null<clang::Expr>(child);
        return !below || is_fixed(in, below, over);
    });
}

std::string iteration::text_of(const function &in, const clang::Expr *value,
                               const known_values &known) const
{
    const auto loop_of = [&](const clang::Stmt *at, const clang::VarDecl *variable) {
        return counters_.count(program::key(variable)) ? counting(in, at, variable) : nullptr;
    };
    const auto name_of = [&](const clang::VarDecl *variable) {
        if (const auto found = known.find(variable); found != known.end())
            return '{' + found->second.text + '}';
        return program::key(variable) + (variable->hasLocalStorage() ? known.call : "");
    };
    if (const auto found = known.find(variable_of(value));
        found != known.end() && (found->second.number || !loop_of(value, found->first)))
        return found->second.text;
    const auto &policy = in.context().getPrintingPolicy();
    std::string text;
    llvm::raw_string_ostream out(text);
    value->printPretty(out, nullptr, policy);
    for_each_statement(value, [&](const clang::Stmt *each) {
        const auto *reference = dyn_cast_or_null<clang::DeclRefExpr>(each);
        const auto *variable = reference ? dyn_cast<clang::VarDecl>(reference->getDecl()) : nullptr;
        if (!variable)
            return;
        const auto found = known.find(variable);
        const bool is_number = found != known.end() && found->second.number;
        const auto *loop = is_number ? nullptr : loop_of(each, variable);
        if (!loop) {
            out << ' ' << name_of(variable);
            return;
        }
        const auto key = program::key(variable);
        out << ' ' << key.substr(0, key.find('@'));
        for (const clang::Stmt *part : {static_cast<const clang::Stmt *>(start_of(loop, variable)),
                                        static_cast<const clang::Stmt *>(loop->getCond()),
                                        static_cast<const clang::Stmt *>(loop->getInc())}) {
            out << " / ";
            if (part)
                part->printPretty(out, nullptr, policy);
            for_each_statement(part, [&](const clang::Stmt *below) {
                const auto *other = dyn_cast_or_null<clang::DeclRefExpr>(below);
                const auto *bound = other ? dyn_cast<clang::VarDecl>(other->getDecl()) : nullptr;
                if (bound && bound != variable)
                    out << ' ' << name_of(bound);
            });
        }
    });
    return out.str();
}

} // namespace zc::instrument

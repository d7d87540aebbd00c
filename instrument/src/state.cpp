/* SPDX-License-Identifier: BSD-3-Clause */
#include "state.h"

#include <algorithm>

namespace zc::instrument {

using llvm::dyn_cast;
using llvm::dyn_cast_or_null;
using llvm::isa;

namespace {

std::set<const clang::Stmt *> ancestors(const function &in, const clang::Stmt *at)
{
    std::set<const clang::Stmt *> found;
    for (; at; at = in.parents->getParent(at))
        found.insert(at);
    return found;
}

/* Where it is declared: the statement whose end ends its scope. nullptr: a parameter. */
const clang::Stmt *scope_of(const function &in, const clang::VarDecl *variable)
{
    const clang::Stmt *found = nullptr;
    for_each_statement(in.decl->getBody(), [&](const clang::Stmt *each) {
        const auto *declaration = dyn_cast_or_null<clang::DeclStmt>(each);
        if (!declaration)
            return;
        for (const auto *decl : declaration->decls())
            if (decl == variable)
                found = in.parents->getParent(declaration);
    });
    return found;
}

class finder {
  public:
    finder(const program &all, const accesses &used, const liveness &live, const resources &opened,
           const uniformity &again, const loop &at)
        : program_(all), used_(used), live_(live), opened_(opened), again_(again), loop_(at)
    {
        result_.types = layouts(&all, opened.persistent(), opened.streams(), reused_structs(all));
    }

    state find()
    {
        variables after, behind;
        for (std::size_t i = 0; i < loop_.way.size(); i++) {
            const auto &[in, call] = loop_.way[i];
            auto now =
                call ? live_.behind(*in, call, after) : live_.at_body(*in, loop_.statement, after);
            if (call)
                add_handed(*in, call, now);
            add_locals(i, now);
            after = now;
        }
        add_globals(after);
        refuse_shadows();
        refuse_other_fields();
        return std::move(result_);
    }

  private:
    const clang::Stmt *point(std::size_t frame) const
    {
        const auto &[in, call] = loop_.way[frame];
        return call ? static_cast<const clang::Stmt *>(call) : body_of(loop_.statement);
    }

    /* Variables that @call leads its callee to, in which the safe point is: what is read of them
     * there is read by the callee's parameters. */
    static void add_handed(const function &in, const clang::CallExpr *call, variables &to)
    {
        for (const auto *argument : call->arguments())
            for_each_statement(argument, [&](const clang::Stmt *each) {
                const auto *reference = dyn_cast_or_null<clang::DeclRefExpr>(each);
                const auto *variable =
                    reference ? dyn_cast<clang::VarDecl>(reference->getDecl()) : nullptr;
                if (variable && !is_value(in, reference))
                    to.insert(program::key(variable));
            });
    }

    /* Is only the value of @object used, or a part of it? */
    static bool is_value(const function &in, const clang::Expr *object)
    {
        const clang::Stmt *child = object;
        for (const auto *up = in.parents->getParent(child); up; up = in.parents->getParent(up)) {
            const auto *cast = dyn_cast<clang::CastExpr>(up);
            if (cast && cast->getCastKind() == clang::CK_LValueToRValue)
                return true;
            const auto *member = dyn_cast<clang::MemberExpr>(up);
            const auto *subscript = dyn_cast<clang::ArraySubscriptExpr>(up);
            const bool is_part = (member && !member->isArrow()) ||
                                 (subscript && subscript->getBase() == child) ||
                                 (cast && cast->getCastKind() == clang::CK_ArrayToPointerDecay) ||
                                 isa<clang::ParenExpr>(up);
            if (!is_part)
                return false;
            child = up;
        }
        return false;
    }

    void add_locals(std::size_t frame, const variables &live)
    {
        const auto &in = *loop_.way[frame].in;
        std::map<std::string, const clang::VarDecl *> all;
        for (const auto *parameter : in.decl->parameters())
            all[program::key(parameter)] = parameter;
        for_each_statement(in.decl->getBody(), [&](const clang::Stmt *each) {
            if (const auto *declaration = dyn_cast_or_null<clang::DeclStmt>(each))
                for (const auto *decl : declaration->decls())
                    if (const auto *variable = dyn_cast<clang::VarDecl>(decl);
                        variable && !variable->hasGlobalStorage())
                        all[program::key(variable)] = variable;
        });
        const auto around = ancestors(in, point(frame));
        const auto &sources = in.context().getSourceManager();
        for (const auto &[key, variable] : all) {
            if (!live.count(key) && !used_.escaping().count(key))
                continue;
            const auto *scope = scope_of(in, variable);
            if (!isa<clang::ParmVarDecl>(variable) &&
                (!around.count(scope) || !sources.isBeforeInTranslationUnit(
                                             variable->getLocation(), point(frame)->getBeginLoc())))
                continue;
            if (in.name == "main" && isa<clang::ParmVarDecl>(variable) &&
                is_never_written(in, key)) {
                leave_out(variable, "an argument of main(), which a successor is given, too");
                continue;
            }
            if (variable->getType().isConstQualified() && !is_const_of_start(frame, scope)) {
                if (variable->getType()->isPointerType() || variable->getType()->isArrayType()) {
                    refuse(variable,
                           "is const, and may have another value in each pass of the loop "
                           "that it is declared in");
                    continue;
                }
                result_.no_longer_const.push_back(variable);
            }
            add(key, variable, in.name + "." + variable->getNameAsString(), frame, true);
        }
    }

    bool is_never_written(const function &in, const std::string &key) const
    {
        for (const auto &one : used_.of(in))
            if (one.key == key && (one.what.writes || one.what.escapes))
                return false;
        return true;
    }

    /* It is given its value once, before the safe point. */
    bool is_const_of_start(std::size_t frame, const clang::Stmt *scope) const
    {
        const auto &in = *loop_.way[frame].in;
        for (const auto *up = scope; up; up = in.parents->getParent(up))
            if (body_of(up))
                return false;
        for (std::size_t i = 0; i < frame; i++)
            for (const auto *up = point(i); up; up = loop_.way[i].in->parents->getParent(up))
                if (body_of(up))
                    return false;
        return true;
    }

    void add_globals(const variables &live)
    {
        std::map<std::string, const clang::VarDecl *> all = program_.globals();
        for (const auto &[name, one] : program_.functions())
            for (const auto &each : used_.of(one))
                if (each.variable->hasGlobalStorage())
                    all.try_emplace(each.key, each.variable);
        for (const auto &[key, variable] : all) {
            if (!live.count(key) && !used_.escaping().count(key))
                continue;
            const auto &context = variable->getASTContext();
            if (!variable->isStaticLocal() && !program_.globals().count(key)) {
                /* stdout and its like: what libc has of its own */
                if (!context.getSourceManager().isInSystemHeader(variable->getLocation()))
                    refuse(variable, "is not defined in any of the sources");
                continue;
            }
            if (variable->isStaticLocal())
                add(key, variable,
                    "static." + variable->getNameAsString() + "." + short_place(variable), 0,
                    false);
            else
                add(key, program_.globals().at(key), key, 0, false);
        }
    }

    static std::string short_place(const clang::VarDecl *variable)
    {
        return place_of(variable->getASTContext(), variable->getLocation());
    }

    void add(const std::string &key, const clang::VarDecl *variable, std::string name,
             std::size_t frame, bool is_local)
    {
        const auto &context = variable->getASTContext();
        const auto type = variable->getType();
        const auto element = layouts::element_of(context, type);
        const bool is_given_up = std::count(result_.no_longer_const.begin(),
                                            result_.no_longer_const.end(), variable) > 0;
        const auto handle = layouts::opaque(element);
        const bool is_chosen =
            opened_.streams().count(key) || (!handle.empty() && handle != "MPI_Request");
        if ((type.isConstQualified() || element.isConstQualified()) && !is_given_up && !is_chosen) {
            if (!is_local || !may_be_other(key)) {
                leave_out(variable, "is const");
                return;
            }
            result_.no_longer_const.push_back(variable);
        }
        if (variable->getTLSKind() != clang::VarDecl::TLS_None)
            return refuse(variable, "is thread-local");
        if (variable->getStorageClass() == clang::SC_Register)
            return refuse(variable, "is declared register, and so has no address");
        if (opened_.streams().count(key) && !is_the_same(key, variable))
            return;
        if (opened_.streams().count(key))
            return leave_out(variable, "is stdout or stderr, which the initialisation chooses");
        if (const auto since = again_.differs_since(key + " size"); !since.empty())
            return refuse(variable, "may have another length in a successor, since " + since);
        const auto found = result_.types.of(context, type, variable->getNameAsString());
        if (!found.refused.empty())
            return refuse(variable, "cannot be saved: " + found.refused);
        const bool is_request = layouts::opaque(element) == "MPI_Request";
        if (opened_.persistent().count(key))
            return leave_out(variable, "holds persistent requests, which the initialisation makes");
        if (!result_.types.is_saved(found.number) && !is_request) {
            handles_.insert(key);
            if (!is_the_same(key, variable))
                return;
            return leave_out(variable, "is a handle of MPI, which the initialisation makes");
        }
        std::replace(name.begin(), name.end(), '/', '_');
        result_.roots.push_back(
            {key, name, variable, found.number, frame, is_local, layouts::name_of(type)});
    }

    /* Is the const variable @key another one in a successor, or does it lead to a block, which is
     * found by the pointers that are saved? What is of file scope, or static, begins with
     * constants. */
    bool may_be_other(const std::string &key) const
    {
        return again_.differs_in(key) || again_.leads_to_block(key);
    }

    /* Would a successor's initialisation give it the same? */
    bool is_the_same(const std::string &key, const clang::VarDecl *variable)
    {
        const auto since = again_.differs_since(key);
        if (!since.empty())
            refuse(variable, "may be another one in a successor, since " + since);
        return since.empty();
    }

    void refuse_other_fields()
    {
        for (const auto &[key, field] : again_.differing_fields()) {
            const auto handle =
                layouts::opaque(layouts::element_of(field->getASTContext(), field->getType()));
            if (opened_.streams().count(key) || (!handle.empty() && handle != "MPI_Request"))
                result_.refused.push_back(
                    {place_of(field->getASTContext(), field->getLocation()),
                     "'" + key +
                         "', which a successor's initialisation chooses, may be another one "
                         "there, since " +
                         again_.differs_since(key)});
        }
    }

    /* &x has to mean the outer variable where the roots of a frame are named. */
    void refuse_shadows()
    {
        for (const auto &one : result_.roots)
            for (const auto &other : result_.roots)
                if (&one < &other && one.is_local && other.is_local && one.frame == other.frame &&
                    one.variable->getName() == other.variable->getName())
                    refuse(other.variable, "hides another variable of this name that is live");
    }

    void refuse(const clang::VarDecl *variable, const std::string &why)
    {
        result_.refused.push_back(
            {short_place(variable),
             "'" + variable->getNameAsString() + "', which is live at the safe point, " + why});
    }

    void leave_out(const clang::VarDecl *variable, const std::string &why)
    {
        result_.left_out.push_back(
            {short_place(variable), "'" + variable->getNameAsString() + "': " + why});
    }

    const program &program_;
    const accesses &used_;
    const liveness &live_;
    const resources &opened_;
    const uniformity &again_;
    const loop &loop_;
    variables handles_;
    state result_;
};

/* A goto behind @point leads to before it: that loop has no statement of its own. */
bool is_in_a_loop_of_gotos(const function &in, const clang::Stmt *point)
{
    const auto &sources = in.context().getSourceManager();
    const auto is_before = [&sources](const clang::Stmt *one, const clang::Stmt *other) {
        return sources.isBeforeInTranslationUnit(one->getBeginLoc(), other->getBeginLoc());
    };
    bool found = false;
    for_each_statement(in.decl->getBody(), [&](const clang::Stmt *each) {
        const auto *jump = dyn_cast_or_null<clang::GotoStmt>(each);
        found |= jump && is_before(jump->getLabel()->getStmt(), point) && is_before(point, jump);
    });
    return found;
}

} // namespace

region cycle_of(const loop &at)
{
    for (const auto &[in, call] : at.way) {
        const clang::Stmt *outermost = nullptr;
        const auto *from = call ? static_cast<const clang::Stmt *>(call) : at.statement;
        if (is_in_a_loop_of_gotos(*in, from))
            return {in, in->decl->getBody(), true};
        for (const auto *up = from; up; up = in->parents->getParent(up))
            if (body_of(up))
                outermost = up;
        if (outermost)
            return {in, outermost};
    }
    return {at.in, at.statement};
}

state find_state(const program &all, const accesses &used, const liveness &live,
                 const resources &opened, const uniformity &again, const loop &at)
{
    return finder(all, used, live, opened, again, at).find();
}

} // namespace zc::instrument

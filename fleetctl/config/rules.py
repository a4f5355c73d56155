"""Rules across objects, each with a code of its own (fleet-files: "Cross-object rules"). What one object may hold is the schema's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fleetctl.capacity.offering import offering_problem
from fleetctl.capacity.policy import PolicyProblem, shape, validate_policy
from fleetctl.capacity.pools import provider_problem
from fleetctl.config.build import Written
from fleetctl.config.lints import Lints
from fleetctl.config.places import Places
from fleetctl.config.policies import Policies, Policy
from fleetctl.config.problems import Problems
from fleetctl.config.references import KEY
from fleetctl.diagnostics import Span, code
from fleetctl.model import bodies as b
from fleetctl.model.ids import ANY_TENANT, ROOT_TENANT
from fleetctl.units import format_energy

SAME_KEY = code(
    "duplicate-idempotency-key", "Two objects have the same key", trigger="one idempotencyKey for two objects of a kind"
)
SAME_POOL_KEY = code(
    "offer-key-taken",
    "Two pools with one key are offered to a tenant in one fleet",
    trigger="offers of two fleets' pools that have the same key, to one tenant: an offer's key is `<pool key>/<tenant>`",
)
SAME_OFFER = code(
    "duplicate-offer", "A pool is offered to a tenant twice", trigger="two offers of one pool to one tenant"
)
RESERVED = code("reserved-name", "A word of fleetctl's own is used as a name", trigger="a tenant called root or any")
CYCLE = code(
    "parent-cycle", "Parents form a circle", trigger="an entitlement or tenant below itself, or its own parent"
)
LIMIT = code(
    "limit-below-guarantee",
    "A limit is below the guarantee",
    trigger="limit.energy below guarantee.energy (pool/1 §2.1)",
)
PERIOD = code("period-below-root", "A period is set below a root", trigger="`period` on an entitlement with a parent")
EXPLICIT_ONLY = code(
    "explicit-only",
    "Something may touch an explicitOnly pool",
    trigger="a procurement or a standing sell on such a pool",
)
SAME_SKU = code(
    "duplicate-procurement",
    "A market pool has two procurements of one SKU",
    trigger="two procurements with one instanceSku in one market pool",
)
READ_ONLY = code(
    "read-only-pool", "A read_only market pool is traded with", trigger="an order or transfer of such a pool"
)
RATE = code(
    "order-rate", "An order has the wrong rate", trigger="a buy without maxRate or with minRate, a sell the other way"
)
SAME_ENDS = code(
    "transfer-to-itself", "A transfer moves nodes from a pool to itself", trigger="from and to are one pool"
)
FOREIGN_SITE = code(
    "foreign-site", "A pool stands on a site of another tenant", trigger="a site whose tenant is not the acting one"
)


class Rules:
    """Checks all objects of a fleet; `tenant` acts."""

    def __init__(
        self, objects: Sequence[Written], places: Places, problems: Problems, lints: Lints, *, tenant: str
    ) -> None:
        self.objects = objects
        self.places = places
        self.problems = problems
        self.lints = lints
        self.tenant = tenant
        self._verdicts: dict[object, list[PolicyProblem]] = {}
        self._by_key = {(item.declared.kind, item.declared.key): item for item in objects}

    def check(self, policies: Policies) -> None:
        """Report everything that breaks a rule, and the policy validators' lints."""
        self._identities()
        self._parents()
        self._pools()
        self._named_policies(policies)
        self._offers()
        self._entitlements()
        self._market()

    def _at(self, item: Written, *path: str) -> int:
        return self.places.value((item.section, item.name, *path))

    def _bodies(self, section: str) -> Iterable[Written]:
        return (item for item in self.objects if item.section == section)

    def _identities(self) -> None:
        if self.tenant == ANY_TENANT:
            detail = f"`{ANY_TENANT}` is nobody who could act; name a tenant"
            self.problems.add(RESERVED, detail, self.places.value(("tenant",)))
        first: dict[tuple[str, str], Written] = {}
        for item in self.objects:
            declared = item.declared
            if declared.kind == "tenant" and declared.key in (ROOT_TENANT, ANY_TENANT):
                detail = f"`{declared.key}` is a word of fleetctl's own; give the tenant another name"
                self.problems.add(RESERVED, detail, item.at)
            other = first.setdefault((declared.kind, declared.key), item)
            if other is item:
                continue
            where = self.problems.sources.span(other.place)
            if declared.kind == "offer":
                self._same_offer(item, other, where)
            else:
                detail = f"`{declared.key}` is also the key of `{other.name}` at {where}; give each its own"
                self.problems.add(SAME_KEY, detail, self._at(item, KEY), subject=declared.label)

    def _same_offer(self, item: Written, other: Written, where: Span) -> None:
        pools = [found.declared.body.pool for found in (other, item) if isinstance(found.declared.body, b.OfferBody)]
        label = item.declared.label
        if pools[0] == pools[-1]:
            detail = f"this pool is already offered to the tenant by `{other.name}` at {where}; remove one"
            self.problems.add(SAME_OFFER, detail, item.place, subject=label)
            return
        detail = (
            f"`{pools[0]}` (offered by `{other.name}` at {where}) and `{pools[-1]}` have one key, and both offers would be "
            f"{label}: offer one of them from another fleet, best the one that owns it"
        )
        self.problems.add(SAME_POOL_KEY, detail, item.place, subject=label)

    def _parents(self) -> None:
        for section in ("tenants", "entitlements"):
            parents = {item.declared.key: (item, _parent(item)) for item in self._bodies(section)}
            if section == "tenants":
                parents.pop(ROOT_TENANT, None)  # reported as a reserved name; its default parent is itself
            done: set[str] = set()
            for start in parents:
                chain: dict[str, None] = {}
                key: str | None = start
                while key is not None and key in parents and key not in done and key not in chain:
                    chain[key] = None
                    key = parents[key][1]
                if key is not None and key in chain:
                    walked = list(chain)
                    self._report_cycle([parents[item][0] for item in walked[walked.index(key) :]])
                done.update(chain)

    def _report_cycle(self, members: list[Written]) -> None:
        names = " → ".join([item.name for item in members] + [members[0].name])
        detail = f"the parents of `{members[0].name}` come back to it ({names}); break the circle at one of them"
        self.problems.add(CYCLE, detail, self._at(members[0], "parent"), subject=members[0].declared.label)

    def _pools(self) -> None:
        for item in self._bodies("pools"):
            body = item.declared.body
            assert isinstance(body, b.PoolBody)
            problem = provider_problem(body, item.declared.label)
            if problem is not None:
                field = "agent" if "agent" in problem.detail else "providerAccountId"
                self.problems.add(problem.code, problem.detail, self._at(item, field), subject=item.declared.label)
            self._policy(item, body)

    def _policy(self, item: Written, body: b.PoolBody) -> None:
        site = self._by_key.get(("site", body.site))
        site_body = site.declared.body if site is not None else None
        if isinstance(site_body, b.SiteBody) and site_body.tenant != self.tenant:
            detail = f"site `{body.site}` belongs to tenant `{site_body.tenant}`; only its owner makes pools on it (leave `tenant` of the site out, or act as its owner)"
            self.problems.add(FOREIGN_SITE, detail, self._at(item, "site"), subject=item.declared.label)
        policy = item.policy
        if policy is None or not (policy.body or policy.misfits):
            return
        for found in self._verdict(policy, body, site_body.kind if isinstance(site_body, b.SiteBody) else None):
            place = policy.place(found.path)
            at = item.at if place is None else place
            if found.severity == "warning":
                self.lints.add(found.code, found.detail, at, item=item)
            else:
                self.problems.add(found.code, found.detail, at, subject=item.declared.label)

    def _verdict(self, policy: Policy, body: b.PoolBody, site_kind: str | None) -> list[PolicyProblem]:
        """What the validators say. Pools come in hundreds with one policy, so equal questions are asked once."""
        question = (repr(policy.body), policy.misfits, body.pool_class, body.sharing, body.gpu_model, site_kind)
        if question not in self._verdicts:
            self._verdicts[question] = validate_policy(
                body.policy,
                pool_class=body.pool_class,
                sharing=body.sharing,
                gpu_model=body.gpu_model,
                site_kind=site_kind,
                platform_owned=self.tenant == ROOT_TENANT,
                attestors=None,
                billing_configured=None,
                misfits=policy.misfits,
            )
        return self._verdicts[question]

    def _named_policies(self, policies: Policies) -> None:
        """Whether the fields of a policy hold what they should needs no pool, and a pool may replace what is wrong."""
        for policy in policies.named():
            for found in (*shape.of_misfits(policy.misfits), *shape.check(policy.body)[1]):
                place = policy.place(found.path) or 0
                if found.severity == "warning":
                    self.lints.add(found.code, found.detail, place)
                else:
                    self.problems.add(found.code, found.detail, place)

    def _offers(self) -> None:
        holders: dict[str, set[str]] = {}
        for item in self._bodies("offers"):
            body = item.declared.body
            assert isinstance(body, b.OfferBody)
            pool = self._by_key.get(("pool", body.pool))
            if pool is None or not isinstance(pool.declared.body, b.PoolBody):
                continue
            others = holders.setdefault(body.pool, set())
            problem = offering_problem(
                pool.declared.body,
                pool_label=pool.declared.label,
                offer_label=item.declared.label,
                owner=self.tenant,
                to=body.to,
                include_descendants=body.include_descendants,
                other_tenants=others - {body.to},
            )
            if body.to != self.tenant:
                others.add(body.to)
            if problem is not None:
                self.problems.add(problem.code, problem.detail, item.place, subject=item.declared.label)

    def _entitlements(self) -> None:
        for item in self._bodies("entitlements"):
            body = item.declared.body
            assert isinstance(body, b.EntitlementBody)
            if body.limit_uj is not None and body.limit_uj < body.guarantee_uj:
                detail = (
                    f"the limit of `{item.name}`, {format_energy(body.limit_uj)}, is below its guarantee of "
                    f"{format_energy(body.guarantee_uj)}; raise the limit or lower the guarantee"
                )
                self.problems.add(LIMIT, detail, self._at(item, "limit", "energy"), subject=item.declared.label)
            if body.parent is not None and body.period_ms is not None:
                detail = f"`{item.name}` has a parent; set `period` on the root of its tree"
                self.problems.add(PERIOD, detail, self._at(item, "period"), subject=item.declared.label)

    def _market(self) -> None:
        skus: dict[tuple[str, str], Written] = {}
        for item in self.objects:
            body = item.declared.body
            if isinstance(body, b.ProcurementBody):
                self._explicit_only(item, body.market_pool, "takes no procurement; remove it, or the flag")
                other = skus.setdefault((body.market_pool, body.instance_sku), item)
                if other is not item:
                    detail = f"`{other.declared.name}` already keeps {body.instance_sku} in this pool; change that one"
                    self.problems.add(SAME_SKU, detail, item.at, subject=item.declared.label)
            elif isinstance(body, b.OrderBody):
                self._order(item, body)
            elif isinstance(body, b.TransferBody):
                if body.from_pool == body.to_pool:
                    detail = f"`{item.name}` moves nodes from a pool to itself; name two pools"
                    self.problems.add(SAME_ENDS, detail, self._at(item, "to"), subject=item.declared.label)
                self._not_read_only(item, "from", body.from_pool)
                self._not_read_only(item, "to", body.to_pool)

    def _order(self, item: Written, body: b.OrderBody) -> None:
        wanted, foreign = ("maxRate", "minRate") if body.side == "buy" else ("minRate", "maxRate")
        rates = {"maxRate": body.max_rate, "minRate": body.min_rate}
        if rates[wanted] is None or rates[foreign] is not None:
            detail = f"`{item.name}` is a {body.side} order, which has `{wanted}` and not `{foreign}`"
            at = item.at if rates[foreign] is None else self._at(item, foreign)
            self.problems.add(RATE, detail, at, subject=item.declared.label)
        if body.side == "sell" and body.standing:
            self._explicit_only(item, body.pool, "takes no standing sell; leave `standing` out, or take the flag off")
        self._not_read_only(item, "pool", body.pool)

    def _explicit_only(self, item: Written, pool: str, mend: str) -> None:
        found = self._by_key.get(("market-pool", pool))
        if found is not None and found.declared.explicit_only:
            at = self._at(item, "standing") if item.section == "orders" else item.at
            detail = f"market pool `{found.name}` is explicitOnly and {mend}"
            self.problems.add(EXPLICIT_ONLY, detail, at, subject=item.declared.label)

    def _not_read_only(self, item: Written, field: str, pool: str) -> None:
        found = self._by_key.get(("market-pool", pool))
        if (
            found is not None
            and isinstance(found.declared.body, b.MarketPoolBody)
            and found.declared.body.kind == "read_only"
        ):
            detail = f"market pool `{found.name}` is read_only; name another one"
            self.problems.add(READ_ONLY, detail, self._at(item, field), subject=item.declared.label)


def _parent(item: Written) -> str | None:
    body = item.declared.body
    return body.parent if isinstance(body, (b.TenantBody, b.EntitlementBody)) else None

-- Purpose: the ledger. Movements and their totals are written in the statement that commits a
-- change. The API shows each movement as two entries, a debit and a credit of the same amount
-- (contract §3).

-- The id of a movement's entry. The ids of one change differ only in their last character, the
-- ordinal (shared/core/ids.ts). The debit of leg k has the ordinal of its transaction plus 2k + 1,
-- the credit has that ordinal plus 2k + 2. The application gives these ordinals to no other id.
create or replace function pay_internal.ledger_entry_id(
  p_transaction_id text, p_leg smallint, p_direction text
) returns text language plpgsql immutable parallel safe as $$
declare
  v_ordinals constant text := '0123456789abcdefghjkmnpqrstvwxyz';
begin
  return 'le_' || substr(p_transaction_id, 5, 25) || substr(
    v_ordinals,
    strpos(v_ordinals, substr(p_transaction_id, 30)) + 2 * p_leg
      + case p_direction when 'debit' then 1 else 2 end,
    1
  );
end $$;

-- The entries of all movements, for reports and audits. A filter by id reads all movements of an
-- environment; a filter by environment_id and transaction_id reads an index.
create or replace view pay.ledger_entries with (security_invoker = true) as
select m.environment_id,
  pay_internal.ledger_entry_id(m.transaction_id, m.leg, side.direction) as id,
  m.transaction_id, m.subject_id, m.refund_id, side.account, side.direction, m.amount_minor,
  m.currency, m.created_at
from pay.ledger_movements m
cross join lateral (
  values ('debit', m.debit_account), ('credit', m.credit_account)
) as side (direction, account);
comment on view pay.ledger_entries is 'The two entries of each movement of the ledger.';

-- Whether an entry exists, by its id. Its movement belongs to a transaction of the same change,
-- whose ordinal is less.
create or replace function pay_internal.has_ledger_entry(p_environment_id text, p_id text)
returns boolean language sql stable as $$
  select exists (
    select from pay.ledger_entries e
    where e.environment_id = p_environment_id
      and e.transaction_id >= 'txn_' || substr(p_id, 4, 25)
      and e.transaction_id < 'txn_' || substr(p_id, 4)
      and e.id = p_id
  )
$$;

-- The movements that a page of ledger entries needs, newest first, each with its number among the
-- movements that the page reads. A page reads half of pay_internal.page_rows() movements, because
-- each has two entries. The last movement that it may read is always among the rows.
-- p_before: the id of the entry after which the page begins; '~' for the first page. It can be the
-- credit of a movement whose debit is on the next page. Each query can use one index only, as in
-- pay_internal.list_range, and is planned once (ADR 0004).
create or replace function pay_internal.page_movements(
  p_environment_id text, p_subject_id text, p_transaction_id text, p_account text, p_currency text,
  p_before text, p_limit integer
) returns table (movement pay.ledger_movements, n bigint) language plpgsql stable rows 100 as $$
declare
  v_rows constant integer := pay_internal.page_rows() / 2;
  v_before constant text := replace(p_before, 'le_', 'txn_');
  -- The transactions of the change that the entry belongs to begin with this.
  v_change constant text := substr(v_before, 1, 29);
  -- Computed here: in the comparison, below row-level security, a call would be a filter.
  v_first constant text := coalesce(p_transaction_id, '');
  v_last constant text := coalesce(p_transaction_id, '~');
begin
  if p_subject_id is null or p_transaction_id is not null then
    return query
      select r.movement, r.n from (
        select t as movement, t.debit_account, t.credit_account, t.currency,
          row_number() over newest as n
        from pay.ledger_movements t
        where t.environment_id = any (array[p_environment_id])
          and t.transaction_id between v_first and v_last
          and t.transaction_id < v_before
          and (t.transaction_id < v_change
            or pay_internal.ledger_entry_id(t.transaction_id, t.leg, 'debit') < p_before)
          and (p_subject_id is null or t.subject_id = p_subject_id)
        window newest as (order by t.environment_id desc, t.transaction_id desc, t.leg desc)
        order by t.environment_id desc, t.transaction_id desc, t.leg desc
        limit v_rows
      ) r
      where r.n = v_rows or coalesce(p_currency = r.currency, true)
        and coalesce(p_account in (r.debit_account, r.credit_account), true)
      limit p_limit;
  else
    return query
      select r.movement, r.n from (
        select t as movement, t.debit_account, t.credit_account, t.currency,
          row_number() over newest as n
        from pay.ledger_movements t
        where t.subject_id = any (array[p_subject_id]) and t.environment_id = p_environment_id
          and t.transaction_id < v_before
          and (t.transaction_id < v_change
            or pay_internal.ledger_entry_id(t.transaction_id, t.leg, 'debit') < p_before)
        window newest as (order by t.subject_id desc, t.transaction_id desc, t.leg desc)
        order by t.subject_id desc, t.transaction_id desc, t.leg desc
        limit v_rows
      ) r
      where r.n = v_rows or coalesce(p_currency = r.currency, true)
        and coalesce(p_account in (r.debit_account, r.credit_account), true)
      limit p_limit;
  end if;
end $$;

-- A page of ledger entries, in the form of pay_internal.list_page. It reads two movements more than
-- the entries of the page need, because the page can begin and end between the two entries of a
-- movement.
create or replace function pay_internal.ledger_page(
  p_environment_id text, p_limit integer, p_starting_after text, p_filters jsonb, out data text,
  out has_more boolean, out next_cursor text
) language plpgsql stable as $$
declare
  v_before constant text := coalesce(p_starting_after, '~');
  v_account constant text := p_filters ->> 'account';
  v_currency constant text := p_filters ->> 'currency';
  v_is_left boolean;
  v_last_shown text;
  v_last_read text;
begin
  select
    string_agg(p.body, ',' order by p.place) filter (where p.is_shown),
    bool_or(p.is_match and not p.is_shown),
    min(p.id) filter (where p.is_shown),
    min(p.id) filter (where p.n = pay_internal.page_rows() / 2)
  into data, v_is_left, v_last_shown, v_last_read
  from (
    select e.*, b.body,
      e.is_match and (e.place = 1 or (
        e.place <= p_limit
        and sum(octet_length(b.body)) over (order by e.id desc) <= pay_internal.page_bytes()
      )) as is_shown
    from (
      select m.movement, m.n, (m.movement).subject_id, side.direction, side.account, entry.id,
        entry.is_match,
        count(*) filter (where entry.is_match) over (order by entry.id desc) as place
      from pay_internal.page_movements(
        p_environment_id, p_filters ->> 'subject_id', p_filters ->> 'transaction_id', v_account,
        v_currency, v_before, case when v_account is null then p_limit / 2 else p_limit end + 2
      ) m
      cross join lateral (
        values ('debit', (m.movement).debit_account), ('credit', (m.movement).credit_account)
      ) as side (direction, account)
      cross join lateral (
        select coalesce(side.account = v_account, true)
            and coalesce((m.movement).currency = v_currency, true) as is_match,
          pay_internal.ledger_entry_id(
            (m.movement).transaction_id, (m.movement).leg, side.direction) as id
      ) entry
      where entry.id < v_before
    ) e
    -- The body in the order of the contract (§3), only for entries that can be shown.
    left join lateral (
      select row_to_json(w)::text as body from (
        select e.id, 'ledger_entry' as object, (e.movement).transaction_id, e.account, e.direction,
          (e.movement).amount_minor, (e.movement).currency,
          case when e.subject_id like 'pay\_%' then e.subject_id end as payment_id,
          (e.movement).refund_id,
          case when e.subject_id like 'tr\_%' then e.subject_id end as transfer_id,
          pay_internal.wire_time((e.movement).created_at) as created_at
      ) w
    ) b on e.is_match and e.place <= p_limit
  ) p;
  data := coalesce(data, '');
  has_more := coalesce(v_is_left, false) or v_last_read is not null;
  next_cursor := case when v_is_left then v_last_shown else v_last_read end;
end $$;

-- Adds an amount to the total of two accounts, in a stripe that no other transaction writes.
--
-- A row stays locked until its transaction has committed, and every movement between two accounts
-- updates their total. So a total has up to 64 stripes, and each statement takes the first free
-- stripe. If all are taken, the statement waits for one, so no amount is lost. The function
-- reserves a stripe by an advisory lock and not by its row, because it then finds a stripe without
-- reading rows. It reads the row in a statement after the lock, so it sees the version that the
-- last holder committed.
--
-- While an old snapshot is open (a backup), PostgreSQL cannot remove dead versions of a row, and it
-- finds the newest version more slowly after each update. So every 64th update increments the
-- generation, which is part of the primary key. A backward scan finds the newest generation first,
-- and a generation has at most 64 versions.
create or replace function pay_internal.add_to_total(
  p_environment_id text, p_currency text, p_debit_account text, p_credit_account text,
  p_amount_minor numeric
) returns void language plpgsql volatile as $$
declare
  v_max_updates constant smallint := 63;
  v_lock text := concat_ws(
    ' ', 'total', p_environment_id, p_currency, p_debit_account, p_credit_account);
  v_stripe smallint := 0;
begin
  while not pg_try_advisory_xact_lock(hashtextextended(v_lock, v_stripe)) loop
    v_stripe := v_stripe + 1;
    if v_stripe = 64 then
      v_stripe := floor(random() * 64);
      perform pg_advisory_xact_lock(hashtextextended(v_lock, v_stripe));
      exit;
    end if;
  end loop;
  update pay.ledger_totals t
  set amount_minor = t.amount_minor + p_amount_minor,
    updates = case when t.updates < v_max_updates then t.updates + 1 else 0 end,
    generation = case when t.updates < v_max_updates then t.generation else t.generation + 1 end
  where t.ctid = (
    select o.ctid from pay.ledger_totals o
    where o.environment_id = p_environment_id and o.currency = p_currency
      and o.debit_account = p_debit_account and o.credit_account = p_credit_account
      and o.stripe = v_stripe
    order by o.generation desc limit 1
  );
  if not found then
    insert into pay.ledger_totals (
      environment_id, currency, debit_account, credit_account, stripe, generation, updates,
      amount_minor
    )
    values (
      p_environment_id, p_currency, p_debit_account, p_credit_account, v_stripe, 0, 0,
      p_amount_minor
    );
  end if;
end $$;

-- Writes the movements of committed changes, and adds them to the totals with one update for each
-- pair of accounts. Concurrency: the stripes of totals are the last locks that a commit waits for,
-- and every transaction takes them in the same order. So the holder of a stripe never waits for
-- another kind of lock, and commits do not deadlock.
-- p_callers: the callers of the committed changes.
create or replace function pay_internal.record_movements(
  p_ledger pay_internal.movement_row[], p_callers pay_internal.caller[]
) returns void language plpgsql volatile as $$
declare
  v_total record;
begin
  for v_total in
    with movement as (
      insert into pay.ledger_movements (
        environment_id, transaction_id, leg, kind, subject_id, refund_id, debit_account,
        credit_account, amount_minor, currency, created_at
      )
      select caller.environment_id, l.transaction_id, l.leg, l.kind,
        l.subject_id, l.refund_id, l.debit_account, l.credit_account, l.amount_minor, l.currency,
        l.created_at
      from unnest(p_ledger) l
      join unnest(p_callers) caller on caller.n = l.n
      returning environment_id, currency, debit_account, credit_account, amount_minor
    )
    select m.environment_id, m.currency, m.debit_account, m.credit_account,
      sum(m.amount_minor) as amount_minor
    from movement m
    group by m.environment_id, m.currency, m.debit_account, m.credit_account
    order by m.environment_id, m.currency, m.debit_account, m.credit_account
  loop
    perform pay_internal.add_to_total(v_total.environment_id, v_total.currency,
      v_total.debit_account, v_total.credit_account, v_total.amount_minor);
  end loop;
end $$;

-- The totals of an environment, in one snapshot. Each step finds the newest generation of a stripe
-- and then the next stripe by the primary key, so it does not read older generations
-- (pay_internal.add_to_total).
create or replace function pay_internal.read_totals(p_environment_id text)
returns table (currency text, debit_account text, credit_account text, amount_minor numeric)
language sql stable rows 10 as $$
  with recursive newest as (
    (
      select t.currency, t.debit_account, t.credit_account, t.stripe, t.amount_minor
      from pay.ledger_totals t
      where t.environment_id = p_environment_id
      order by t.environment_id desc, t.currency desc, t.debit_account desc, t.credit_account desc,
        t.stripe desc, t.generation desc
      limit 1
    )
    union all
    select o.currency, o.debit_account, o.credit_account, o.stripe, o.amount_minor
    from newest n
    cross join lateral (
      select t.currency, t.debit_account, t.credit_account, t.stripe, t.amount_minor
      from pay.ledger_totals t
      where t.environment_id = p_environment_id
        and (t.currency, t.debit_account, t.credit_account, t.stripe)
          < (n.currency, n.debit_account, n.credit_account, n.stripe)
      order by t.environment_id desc, t.currency desc, t.debit_account desc, t.credit_account desc,
        t.stripe desc, t.generation desc
      limit 1
    ) o
  )
  select n.currency, n.debit_account, n.credit_account, sum(n.amount_minor)
  from newest n
  group by n.currency, n.debit_account, n.credit_account
$$;

-- Debits and credits of each currency and account of an environment, in one snapshot.
create or replace function pay_internal.account_sums(p_environment_id text)
returns table (currency text, account text, debits_minor numeric, credits_minor numeric)
language sql stable rows 10 as $$
  select t.currency, side.account, sum(side.debits_minor), sum(side.credits_minor)
  from pay_internal.read_totals(p_environment_id) t
  cross join lateral (
    values
      (t.debit_account, t.amount_minor, 0::numeric),
      (t.credit_account, 0::numeric, t.amount_minor)
  ) as side (account, debits_minor, credits_minor)
  group by t.currency, side.account
$$;

-- The amount that can be transferred: credits less debits of the available account.
create or replace function pay_internal.available_minor(p_environment_id text, p_currency text)
returns numeric language sql stable as $$
  select coalesce(sum(s.credits_minor - s.debits_minor), 0)
  from pay_internal.account_sums(p_environment_id) s
  where s.currency = p_currency and s.account = 'available'
$$;

-- The sums of each account in each currency, as JSON text (contract §3). Sums are numeric, so their
-- text is exact beyond 2^53 too.
create or replace function pay.balance(p_request text) returns pay.admission
language plpgsql volatile security definer as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request, 'shared', true);
begin
  if v_access.outcome = 'ok' then
    select format(
      '{"object":"balance","livemode":%s,"balances":[%s]}',
      (select e.livemode from pay.environments e where e.id = v_access.environment_id)::text,
      string_agg(row_to_json(b)::text, ',' order by b.currency, b.account)
    )
    into v_access.body
    from (
      select s.currency, s.account, s.debits_minor, s.credits_minor,
        s.credits_minor - s.debits_minor as amount_minor
      from pay_internal.account_sums(v_access.environment_id) s
    ) b;
  end if;
  return v_access;
end $$;
grant execute on function pay.balance to pay_api;

-- Purpose: interim files, camt.052 and 054, whose entries a camt.053 confirms later. Each kind has
-- an entry under one identity.

-- The bit of an interim file, whose entries a camt.053 confirms later; 0: it is a camt.053.
create or replace function pay_internal.interim_kind(p_kind text)
returns smallint language sql immutable as $$
  select case p_kind when 'camt.052' then 1 when 'camt.054' then 2 else 0 end::smallint
$$;

-- Books entries that were taken for other ones. As entries of this file they are compared again
-- with those of other files.
create or replace function pay_internal.release_bank_entries(
  p_account_id text, p_sha256 text, p_ids text[], p_is_statement boolean
) returns void language plpgsql volatile as $$
declare
  v_warnings jsonb; v_events jsonb; v_days jsonb;
begin
  if p_ids is null then return; end if;
  with apart as materialized (
    -- Each lookup names the order of its index.
    select a.environment_id, b.*
    from pay.provider_accounts a
    cross join unnest(p_ids) as i (id)
    cross join lateral (
      select b.ctid as place, b.id, b.booked_on, b.held_events from pay.bank_entries b
      where b.environment_id = a.environment_id and b.account_id = p_account_id
        and b.id between i.id and i.id
      order by b.id offset 0
    ) b
    where a.id = p_account_id
  ), released as (
    update pay.bank_entries b
    set sha256 = p_sha256, same_as = null, held_events = null,
      statement_sha256 = case when p_is_statement then p_sha256 end
    from apart p where b.ctid = p.place
  )
  select jsonb_agg(format('the entry %s of %s was taken for another one', p.id, p.booked_on)),
    jsonb_agg(distinct p.booked_on),
    (select jsonb_agg(event.value || jsonb_build_object('environment_id', o.environment_id,
      'account_id', p_account_id, 'body', event.value))
    from apart o cross join jsonb_array_elements(o.held_events) event)
  into v_warnings, v_days, v_events
  from apart p;
  perform pay_internal.keep_provider_events(coalesce(v_events, '[]'));
  perform pay_internal.keep_file_warnings(p_account_id, p_sha256, v_warnings, v_days);
end $$;

-- Notes that an interim file has entries under their identities, and books those by themselves that
-- were taken for another one, if files of one kind have both, or if the file brings their details
-- and neither had any. Then they are compared again (pay_internal.pair_bank_entries).
-- p_entries as in pay_internal.store_bank_entries
create or replace function pay_internal.note_interim_file(
  p_account_id text, p_sha256 text, p_entries jsonb
) returns void language plpgsql volatile as $$
declare
  v_apart text[];
begin
  -- Each lookup names the order of its index, here and below.
  update pay.bank_entries b set seen_in = b.seen_in | k.seen_in
  from (
    select b.ctid as place, e.seen_in
    from pay.provider_accounts a
    cross join (
      select o.id, pay_internal.interim_kind(o.kind) as seen_in
      from jsonb_to_recordset(p_entries) as o (id text, kind text)
    ) e
    cross join lateral (
      select b.ctid from pay.bank_entries b
      where b.environment_id = a.environment_id and b.account_id = p_account_id
        and b.id between e.id and e.id and b.seen_in & e.seen_in = 0
      order by b.id offset 0 for update of b
    ) b
    where a.id = p_account_id and e.seen_in > 0
  ) k
  where b.ctid = k.place;
  with entry as materialized (
    select a.environment_id, e.id, not e.is_total as has_details
    from pay.provider_accounts a
    cross join jsonb_to_recordset(p_entries) as e (id text, is_total boolean, kind text)
    where a.id = p_account_id and pay_internal.interim_kind(e.kind) > 0
  ), same as materialized (
    select e.environment_id, false as has_details, other.*
    from entry e
    cross join lateral (
      select y.id, y.same_as, y.seen_in, y.details_sha256 from pay.bank_entries y
      where y.account_id = p_account_id and y.same_as between e.id and e.id
      order by y.same_as offset 0
    ) other
    union all
    select e.environment_id, e.has_details, own.*
    from entry e
    cross join lateral (
      select b.id, b.same_as, b.seen_in, b.details_sha256 from pay.bank_entries b
      where b.environment_id = e.environment_id and b.account_id = p_account_id
        and b.id between e.id and e.id and b.same_as is not null
      order by b.id offset 0
    ) own
  )
  select array_agg(distinct s.id) into v_apart
  from same s
  cross join lateral (
    select b.seen_in, b.details_sha256 from pay.bank_entries b
    where b.environment_id = s.environment_id and b.account_id = p_account_id
      and b.id between s.same_as and s.same_as
    order by b.id offset 0
  ) kept
  where kept.seen_in & s.seen_in <> 0
    or s.has_details and s.details_sha256 is null and kept.details_sha256 is null;
  perform pay_internal.release_bank_entries(p_account_id, p_sha256, v_apart, false);
end $$;

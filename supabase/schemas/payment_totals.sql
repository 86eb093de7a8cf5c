-- Purpose: counts and sums of payments, by span of time, status and currency (contract §5).

-- The number of payments that a page of totals reads. A page has at most as many items.
create or replace function pay_internal.totals_rows()
returns integer language sql immutable parallel safe as $$ select 20000 $$;

-- The totals of the newest payments before a cursor, in the form that pay.list returns. Totals of
-- several pages add up. The rows come in the order of the primary key, so a page reads no others.
-- p_filters {id_from, id_before, status, currency, method_kind, from_ms, bucket_s}, each can be
--           absent: bucket_s is the length of a span; the first begins at from_ms
create or replace function pay_internal.totals_page(
  p_environment_id text, p_starting_after text, p_filters jsonb, out data text,
  out has_more boolean, out next_cursor text
) language plpgsql stable as $$
declare
  v_before constant text := least(coalesce(p_starting_after, '~') collate "C",
    coalesce(p_filters ->> 'id_before', '~'));
  v_from constant text := coalesce(p_filters ->> 'id_from', '');
  v_from_ms constant bigint := p_filters ->> 'from_ms';
  v_bucket_ms constant bigint := (p_filters ->> 'bucket_s')::bigint * 1000;
begin
  with found as materialized (
    select t.id, t.status, t.currency, t.method_kind, t.amount_minor, t.amount_released,
      t.amount_refunded, t.created_at
    from pay.payments t
    where t.environment_id = p_environment_id and t.id < v_before and t.id >= v_from
    order by t.id desc limit pay_internal.totals_rows()
  ), summed as (
    select
      (floor(extract(epoch from f.created_at) * 1000)::bigint - v_from_ms) / v_bucket_ms as bucket,
      f.status, f.currency, count(*) as payments, sum(f.amount_minor) as amount,
      sum(case
        when f.status in (/* paid */ 'completed', 'partially_refunded', 'refunded', 'chargeback')
        then f.amount_minor - f.amount_released else 0 end) as captured,
      sum(f.amount_refunded) as refunded
    from found f
    where (p_filters ->> 'status' is null or f.status = p_filters ->> 'status')
      and (p_filters ->> 'currency' is null or f.currency = p_filters ->> 'currency')
      and (p_filters ->> 'method_kind' is null or f.method_kind = p_filters ->> 'method_kind')
    group by 1, 2, 3
  )
  select
    (
      select coalesce(string_agg(format(
          '{"object":"payment_total","from":%s,"status":%s,"currency":%s,"count":%s,'
          '"amount_minor":%s,"amount_captured":%s,"amount_refunded":%s}',
          coalesce(to_json(pay_internal.wire_time(
            to_timestamp((v_from_ms + s.bucket * v_bucket_ms) / 1000.0)))::text, 'null'),
          to_json(s.status), to_json(s.currency), s.payments, s.amount, s.captured, s.refunded
        ), ',' order by s.bucket desc, s.status, s.currency), '')
      from summed s
    ),
    count(*) = pay_internal.totals_rows(),
    case when count(*) = pay_internal.totals_rows() then min(f.id) end
  into data, has_more, next_cursor
  from found f;
end $$;

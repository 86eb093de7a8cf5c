-- Purpose: times: the clock for deletions and expiries, their text in responses, and in ids.

-- The time by which data is deleted (docs/decisions/0008-what-retention-deletes.md). It is not the
-- instant that the functions send (p_at), so a wrong clock of a function loses no data.
-- A statement over many rows calls it once. Tests replace it to move time. In plpgsql, because a
-- function in SQL is planned again in each statement that calls it.
create or replace function pay_internal.server_time()
returns timestamptz language plpgsql stable parallel safe as $$
begin
  return now();
end $$;

-- A time in the format of the contract.
create or replace function pay_internal.wire_time(p_at timestamptz)
returns text language plpgsql stable parallel safe as $$
begin
  return to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
end $$;

-- The least id that shared/core/ids.ts can make at or after an instant. An id begins with its
-- milliseconds in base 32.
create or replace function pay_internal.id_floor(p_prefix text, p_at timestamptz)
returns text language plpgsql immutable as $$
declare
  v_rest bigint := floor(extract(epoch from p_at) * 1000);
  v_time text := '';
begin
  for v_character in 1..9 loop
    v_time := substr('0123456789abcdefghjkmnpqrstvwxyz', (v_rest % 32)::integer + 1, 1) || v_time;
    v_rest := v_rest / 32;
  end loop;
  return p_prefix || v_time || repeat('0', 17);
end $$;

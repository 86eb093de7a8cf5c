-- Purpose: the words by which a search finds payments (search.sql): a row of pay.search_words for each
-- payment, and a further one for each 16 words beyond the first 16. No create writes there. A job
-- reads the new events of each environment in portions and writes the words of their payments. A
-- search writes the newest portion itself before it reads.
--
-- A word is the first 64 bits of SHA-256 of the environment's id and the normal form, so the table
-- has no text of a person, and a word of one environment is none of another. A change of the normal
-- form needs a migration that empties pay.search_words and pay.search_cursors: the job then writes
-- all words again.

-- The words of a row. Each place has an index, search_words_1 and so on.
create or replace function pay_internal.words_of_row()
returns integer language sql immutable parallel safe as $$ select 16 $$;

-- The newest events of a payment whose idempotency keys are words of it.
create or replace function pay_internal.most_keys()
returns integer language sql immutable parallel safe as $$ select 20 $$;

-- The most events that the job remembers: pay_internal.write_words.
create or replace function pay_internal.most_seen()
returns integer language sql immutable parallel safe as $$ select 10000 $$;

-- The environments of a run of the job, and the time after which it begins no other.
create or replace function pay_internal.environments_of_job()
returns integer language sql immutable parallel safe as $$ select 200 $$;

create or replace function pay_internal.job_time()
returns interval language sql immutable parallel safe as $$ select interval '1 second' $$;

-- The lock of the words of an environment. Writers have it alone; an erasure, and the deletion of a
-- retired environment, share it: no words of an erased or deleted text are written after that.
create or replace function pay_internal.words_lock(p_environment_id text)
returns bigint language sql immutable parallel safe as $$
  select hashtextextended('words ' || p_environment_id, 0)
$$;

-- The normal form of a text: compatibility forms, marks and case do not count. Of the letters
-- without a decomposition it knows the European ones; case counts beyond Latin, Greek and Cyrillic.
create or replace function pay_internal.plain_text(p_text text)
returns text language plpgsql immutable parallel safe as $$
declare
  v_text text := lower(btrim(p_text) collate "C");
begin
  if octet_length(v_text) = length(v_text) then return v_text; end if;
  v_text := regexp_replace(normalize(v_text, nfkd), '[\u0300-\u036f]', '', 'g');
  v_text := translate(lower(v_text collate "C"),
    'ØøŁłĐđıΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩςАБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ',
    'oollddiαβγδεζηθικλμνξοπρστυφχψωσабвгдежзиклмнопрстуфхцчшщъыьэюя');
  return replace(replace(replace(replace(replace(replace(replace(v_text,
    'ß', 'ss'), 'ẞ', 'ss'), 'æ', 'ae'), 'Æ', 'ae'), 'œ', 'oe'), 'Œ', 'oe'), 'þ', 'th');
end $$;

-- The first words of a text. "Müller" and "Mueller" are one word: an e after a, o or u does not count.
create or replace function pay_internal.text_words(p_text text)
returns text[] language plpgsql immutable parallel safe as $$
declare
  v_text text := pay_internal.plain_text(p_text);
  v_word text;
  v_words text[] := '{}';
  -- Of the texts of a payment, or of a search.
  v_most constant integer := 16;
begin
  v_text := replace(replace(replace(v_text, 'ae', 'a'), 'oe', 'o'), 'ue', 'u');
  if octet_length(v_text) > length(v_text) then
    v_text := translate(v_text, '«»¡¿·•–—…‘’“”„', repeat(' ', 14));
  end if;
  foreach v_word in array string_to_array(
    translate(v_text, e'!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~\t\n\r', repeat(' ', 35)), ' ')
  loop
    if v_word <> '' and v_word <> all (v_words) then
      v_words := v_words || v_word;
      exit when cardinality(v_words) = v_most;
    end if;
  end loop;
  return v_words;
end $$;

-- The number of decimals of a currency, as in shared/core/currency.ts.
create or replace function pay_internal.minor_digits(p_currency text)
returns integer language plpgsql immutable parallel safe as $$
begin
  return case
    when p_currency = any ('{BIF,CLP,DJF,GNF,ISK,JPY,KMF,KRW,PYG,RWF,UGX,VND,VUV,XAF,XOF,XPF}')
      then 0
    when p_currency = any ('{BHD,IQD,JOD,KWD,LYD,OMR,TND}') then 3
    when p_currency = any ('{USDC,USDT}') then 6
    else 2 end;
end $$;

-- The reference of a payment without "RF" and its check digits (shared/core/creditor_reference.ts).
create or replace function pay_internal.reference_body(p_id text)
returns text language plpgsql immutable parallel safe as $$
declare
  v_hash constant bytea := sha256(convert_to('creditor reference ' || p_id, 'UTF8'));
begin
  return (select string_agg(
      substr('0123456789abcdefghjkmnpqrstvwxyz', get_byte(v_hash, n) % 32 + 1, 1), '' order by n)
    from generate_series(0, 15) n);
end $$;

-- The words of a payment: "=" before a whole value, "#" before an amount. A text that is no JSON has
-- none, so that it holds up no others.
create or replace function pay_internal.words_of(p_payment pay.payments)
returns text[] language plpgsql stable as $$
declare
  v_body jsonb;
  v_method jsonb;
  v_email text;
begin
  v_body := p_payment.body::jsonb;
  v_method := v_body -> 'method';
  v_email := v_body #>> '{customer,email}';
  return array(
    select '=' || pay_internal.plain_text(v.value) from unnest(array[
      v_email, v_body #>> '{metadata,order_id}', v_body #>> '{metadata,order}',
      v_body #>> '{metadata,orderId}', v_method #>> '{card,last4}', v_method #>> '{iban,last4}',
      v_method #>> '{mandate,id}', v_method #>> '{wallet,address}', v_method #>> '{wallet,tx_hash}',
      v_body #>> '{next_action,address}', case when pay_internal.rail_is_by_bank(
        p_payment.method_kind) then pay_internal.reference_body(p_payment.id) end
    ]) v (value) where v.value <> ''
  ) || ('#' || trim_scale(p_payment.amount_minor
    * ('1e-' || pay_internal.minor_digits(p_payment.currency))::numeric))
  || pay_internal.text_words(concat_ws(' ', v_body #>> '{customer,name}',
    split_part(v_email, '@', 1), p_payment.reference, v_body ->> 'description'));
exception when data_exception then
  raise warning 'payment % has no words: %', p_payment.id, sqlerrm;
  return '{}';
end $$;

create or replace function pay_internal.word_hashes(p_environment_id text, p_words text[])
returns bigint[] language plpgsql immutable parallel safe as $$
begin
  return array(
    select ('x' || encode(substr(sha256(convert_to(p_environment_id || ' ' || w.word, 'UTF8')),
      1, 8), 'hex'))::bit(64)::bigint
    from unnest(p_words) w (word));
end $$;

-- Writes the words of payments. Words that are there already cost no write. Each "offset 0" leaves
-- the planner only the primary key: with statistics of an empty table it reads all rows for each.
create or replace function pay_internal.add_words(p_environment_id text, p_ids text[])
returns void language plpgsql volatile as $$
begin
  insert into pay.search_words as s (environment_id, payment_id, part, words)
  select p_environment_id, w.id, r.part, r.words
  from (
    select p.id, pay_internal.word_hashes(p_environment_id, pay_internal.words_of(p.row) || array(
      select distinct '=' || pay_internal.plain_text(v.key) from (
        select v.idempotency_key as key from pay.events v
        where v.environment_id = p_environment_id and v.subject_id = p.id
        order by v.environment_id desc, v.subject_id desc, v.sequence desc
        limit pay_internal.most_keys()
      ) v
      where v.key is not null)) as words
    from unnest(p_ids) i (id)
    cross join lateral (
      select p.id, p as row from pay.payments p
      where p.environment_id = p_environment_id and p.id = i.id offset 0
    ) p
    -- The order of the primary key, whose pages are then full.
    order by p.id offset 0
  ) w
  cross join lateral (
    select n as part,
      w.words[n * pay_internal.words_of_row() + 1:(n + 1) * pay_internal.words_of_row()] as words
    from generate_series(0, (cardinality(w.words) - 1) / pay_internal.words_of_row()) n
  ) r
  where r.words <> '{}' and not exists (
    select from pay.search_words o
    where o.environment_id = p_environment_id and o.payment_id = w.id and o.part = r.part
      and o.words = r.words offset 0
  )
  on conflict on constraint search_words_pkey do update set words = excluded.words;
end $$;

-- Writes the words of the payments of the next events, at most p_most, and returns their number. The
-- cursor moves on to an event when it is older than v_late. Until then the events
-- after it that were read are remembered.
-- p_waits: 0.2 s for another writer, which has read the events and not committed yet
create or replace function pay_internal.write_words(
  p_environment_id text, p_most integer, p_waits boolean default false
) returns integer language plpgsql volatile as $$
declare
  v_now constant timestamptz := pay_internal.server_time();
  v_cursor pay.search_cursors;
  v_after text;
  v_new text[];
  v_is_over boolean;
  v_has_lock boolean;
  -- Events are not committed in the order of their ids. The job looks at those of this time again,
  -- at most at pay_internal.most_seen(), and remembers those that it has read.
  v_late constant interval := '20 seconds';
begin
  for v_try in 1..case when p_waits then 11 else 1 end loop
    if v_try > 1 then perform pg_sleep(0.02); end if;
    v_has_lock := pg_try_advisory_xact_lock(pay_internal.words_lock(p_environment_id));
    exit when v_has_lock;
  end loop;
  if not v_has_lock or not exists (
    select from pay.environments e
    where e.id = p_environment_id and e.retired_at is null and e.moving is null
  ) then
    return 0;
  end if;
  select * into v_cursor from pay.search_cursors c where c.environment_id = p_environment_id;
  v_cursor.environment_id := p_environment_id;
  v_after := coalesce(v_cursor.after_id, '');
  v_cursor.seen := coalesce(v_cursor.seen, '{}');
  v_new := array(
    select r.id from (
      select v.id from pay.events v
      where v.environment_id = any (array[p_environment_id]) and v.id > v_after
      order by v.environment_id, v.id limit cardinality(v_cursor.seen) + p_most
    ) r
    except select unnest(v_cursor.seen));
  v_is_over := v_now not between v_cursor.marked_at and v_cursor.marked_at + v_late
    or cardinality(v_cursor.seen) > pay_internal.most_seen();
  if v_new = '{}' and v_is_over is not true then return 0; end if;
  perform pay_internal.add_words(p_environment_id, array(
    select distinct v.subject_id from unnest(v_new) n (id)
    -- So that the planner uses the primary key with any statistics: see pay_internal.add_words.
    cross join lateral (
      select v.subject_id from pay.events v
      where v.environment_id = p_environment_id and v.id = n.id offset 0
    ) v
    where starts_with(v.subject_id, 'pay_')));
  v_cursor.seen := v_cursor.seen || v_new;
  if v_is_over then
    v_after := v_cursor.marked_id;
    v_cursor.seen := array(select s.id from unnest(v_cursor.seen) s (id) where s.id > v_after);
  end if;
  if v_is_over is not false then
    v_cursor.marked_id := (select max(s.id) from unnest(v_cursor.seen) s (id));
    v_cursor.marked_at := case when v_cursor.marked_id is not null then v_now end;
  end if;
  v_cursor.after_id := v_after;
  insert into pay.search_cursors select v_cursor.*
  on conflict on constraint search_cursors_pkey do update set after_id = excluded.after_id,
    seen = excluded.seen, marked_id = excluded.marked_id, marked_at = excluded.marked_at;
  return cardinality(v_new);
end $$;

-- The job: writes words of each environment with new events, accounts in turn. Returns the number of
-- events. An environment that fails holds up no other.
create or replace function pay.write_search_words()
returns bigint language plpgsql volatile security definer as $$
declare
  v_until timestamptz;
  v_environment_id text;
  v_events bigint := 0;
  -- The events whose words are written for one environment before the next has its turn.
  v_portion constant integer := 2000;
begin
  perform pay_internal.act_as_worker();
  for v_environment_id in
    select t.id from (
      select e.id, row_number() over (partition by e.account order by random()) as turn
      from pay.environments e
      left join pay.search_cursors c on c.environment_id = e.id
      -- Computed here, because a coalesce in the comparison is no condition of an index.
      cross join lateral (select coalesce(c.after_id, '') as after_id offset 0) a
      -- In the order of the primary key, so that the planner uses it with any statistics.
      left join lateral (
        select v.id from pay.events v
        where v.environment_id = any (array[e.id]) and v.id > a.after_id
        order by v.environment_id, v.id limit 1
      ) v on true
      where e.retired_at is null and e.moving is null
        and coalesce(v.id, c.marked_id) is not null
    ) t
    order by t.turn, random() limit pay_internal.environments_of_job()
  loop
    v_until := coalesce(v_until, clock_timestamp() + pay_internal.job_time());
    begin
      v_events := v_events
        + pay_internal.write_words(v_environment_id, v_portion);
    exception when others then
      raise warning 'the search words of % failed: % %', v_environment_id, sqlstate, sqlerrm;
    end;
    exit when clock_timestamp() > v_until;
  end loop;
  return v_events;
end $$;
grant execute on function pay.write_search_words to pay_api, pay_operator;

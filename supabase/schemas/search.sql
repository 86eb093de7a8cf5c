-- Purpose: finds payments by what people type: whole values, such as an e-mail address or an amount,
-- and words (contract §5, decision 0004). What has no index of its own is found in pay.search_words
-- (search_words.sql).

-- The amounts that a text can be, with "." or "," before the decimals and with or without groups of
-- thousands and a currency: both readings of 1,234.
create or replace function pay_internal.sought_amounts(p_text text)
returns text[] language plpgsql immutable parallel safe as $$
declare
  v_number constant text := substring(p_text
    from '^(?:[A-Za-z]{3,4}|[€$£¥])?\s*([0-9][0-9., '']{0,19})\s*(?:[A-Za-z]{3,4}|[€$£¥])?$');
begin
  return array(
    select '#' || trim_scale(r.amount::numeric) from (values
      (replace(v_number, ',', '.'), '^[0-9]+([.,][0-9]{1,6})?$'),
      (regexp_replace(v_number, '[., '']', '', 'g'), '^[0-9]{1,3}([., ''])[0-9]{3}(\1[0-9]{3})*$'),
      (replace(regexp_replace(v_number, '[. '']', '', 'g'), ',', '.'),
        '^[0-9]{1,3}([. ''])[0-9]{3}(\1[0-9]{3})*,[0-9]{1,6}$'),
      (regexp_replace(v_number, '[, '']', '', 'g'),
        '^[0-9]{1,3}([, ''])[0-9]{3}(\1[0-9]{3})*[.][0-9]{1,6}$')
    ) r (amount, form)
    where btrim(v_number) ~ r.form);
end $$;

-- The payments that have a word, at most p_most. Only the index of a place has the order of its
-- part, so the planner uses it with any statistics (decision 0004). The plan is made once.
create or replace function pay_internal.word_rows(
  p_environment_id text, p_word bigint, p_most integer
) returns setof text language plpgsql stable rows 10 as $$
begin
  return query
    (select s.payment_id from pay.search_words s where s.words[1] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[1] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[2] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[2] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[3] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[3] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[4] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[4] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[5] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[5] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[6] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[6] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[7] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[7] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[8] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[8] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[9] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[9] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[10] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[10] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[11] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[11] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[12] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[12] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[13] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[13] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[14] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[14] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[15] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[15] desc limit p_most) union all
    (select s.payment_id from pay.search_words s where s.words[16] = any (array[p_word])
     and s.environment_id = p_environment_id order by s.words[16] desc limit p_most)
    limit p_most;
end $$;

-- The values and words of a search: {text, values, words, rarest}, and is_common if one of the values
-- or all words have more payments than a search counts: a page then reads the newest payments.
-- rarest: the word with the fewest payments; null if one of the words has none. Null if no payment
-- has the values or the words: a page reads the texts themselves.
create or replace function pay_internal.sought(p_environment_id text, p_text text)
returns jsonb language plpgsql stable as $$
declare
  v_text constant text := btrim(p_text);
  v_body constant text := substring(upper(regexp_replace(v_text, '[^A-Za-z0-9]', '', 'g'))
    from '^RF[0-9]{2}([0-9A-HJKMNP-TV-Z]{16})$');
  v_words constant bigint[] :=
    pay_internal.word_hashes(p_environment_id, pay_internal.text_words(v_text));
  v_values constant bigint[] := pay_internal.word_hashes(p_environment_id,
    array_remove(array['=' || pay_internal.plain_text(v_text), '=' || lower(v_body)], null)
    || pay_internal.sought_amounts(v_text));
  v_most constant integer :=
    pay_internal.counted_rows() / (cardinality(v_words) + cardinality(v_values));
  v_found jsonb;
  v_is_common boolean;
  v_is_known boolean;
begin
  with counted as materialized (
    select w.word, c.rows from unnest(v_words || v_values) w (word)
    cross join lateral (
      select count(*) as rows from pay_internal.word_rows(p_environment_id, w.word, v_most + 1)
    ) c
  )
  select jsonb_build_object('rarest', case when k.rows > 0 then k.word end),
    coalesce(k.rows > v_most, false)
      or exists (select from counted c where c.word = any (v_values) and c.rows > v_most)
  into v_found, v_is_common
  from (select) one
  left join (
    select * from counted c where c.word = any (v_words) order by c.rows limit 1
  ) k on true;
  v_found := v_found || jsonb_build_object('text', v_text, 'words', v_words,
    'values', v_values, 'most', v_most, 'is_common', v_is_common);
  if v_is_common then return v_found; end if;
  execute format('select exists (select from (%s) t where pay_internal.is_found($1, t.id,
      t.reference, t.customer_id, $2))', pay_internal.found_rows(v_found))
  into v_is_known using p_environment_id, v_found, '~', '';
  return case when v_is_known then v_found end;
end $$;

-- A query for the newest payments that can match; null if only the newest payments can be looked
-- through. $1, $3 and $4 as in pay_internal.list_query. Parts that end with the order of the index
-- leave the planner no other (decision 0004).
create or replace function pay_internal.found_rows(p_found jsonb)
returns text language sql immutable as $$
  select case when not (p_found -> 'is_common')::boolean then format('select p.* from (
      select u.id from (%s union all select w.id from (
        select jsonb_array_elements_text(%L)::bigint as word
      ) v cross join lateral pay_internal.word_rows($1, v.word, %s) w (id) where w.id < $3 and w.id >= $4) u
      group by u.id order by u.id desc limit pay_internal.page_rows()
    ) c
    cross join lateral (
      select p.* from pay.payments p where p.environment_id = $1 and p.id = c.id offset 0
    ) p',
    format('(select %1$L as id where %1$L < $3 and %1$L >= $4)', p_found ->> 'text')
    || (select string_agg(format(' union all (select t.id from pay.payments t
        where t.%1$s = any (array[%2$L]) and t.%1$s is not null and t.environment_id = $1
          and t.id < $3 and t.id >= $4
        order by t.%1$s desc, t.environment_id desc, t.id desc limit pay_internal.page_rows())',
        name, p_found ->> 'text'), '')
     from unnest(array['reference', 'customer_id']) name),
    (p_found -> 'values') || coalesce(nullif(p_found -> 'rarest', 'null'), '[]'),
    p_found ->> 'most') end
$$;

-- Whether a payment has one of the values, or all of the words.
create or replace function pay_internal.is_found(
  p_environment_id text, p_id text, p_reference text, p_customer_id text, p_found jsonb
) returns boolean language plpgsql stable as $$
declare
  v_words constant bigint[] := array(select jsonb_array_elements_text(p_found -> 'words')::bigint);
  v_own constant bigint[] := array(
    select unnest(w.words) from pay.search_words w
    where w.environment_id = p_environment_id and w.payment_id = p_id);
begin
  return p_found ->> 'text' in (p_id, p_reference, p_customer_id)
    or v_own && array(select jsonb_array_elements_text(p_found -> 'values')::bigint)
    or v_words <> '{}' and v_own @> v_words;
end $$;
